"""Replaces secrets in text with ``***`` before it is shown, logged or stored.

The names of secret settings are those of Spark's ``spark.redaction.regex``, extended by what object stores, Azure and
Java keystores use. Masking too much costs a word of a message; masking too little costs a password.
"""

from __future__ import annotations

import re
from functools import cache

MASK = "***"

_NAME = (
    r"[\w.\-]*(?:secret|passw(?:or)?d|pwd|passphrase|token|credential|access[._-]?key|api[._-]?key|account[._-]?key"
    r"|private[._-]?key|x-amz-signature)[\w.\-]*"
)
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&"'(){}\[\]<>]+)"""


@cache
def _rules() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns with their replacements, in order. Compiled at the first use: most commands never need them."""
    rules = (
        (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", MASK),
        # scheme://user:password@, up to the last @ of the word: an unescaped password may contain / and @.
        (r"""(?i)(\b[a-z][a-z0-9+.\-]{0,30}://[^\s/:@"]*):[^\s"]*@""", rf"\1:{MASK}@"),
        # "name": "value", as in JSON and in Python dictionaries.
        (rf"""(?i)(["'])({_NAME})(\1\s*[:=]\s*){_VALUE}""", rf'\1\2\3"{MASK}"'),
        # name=value, also in the query of a URL. After a / it is a partition folder of a table, such as /token=7/.
        (rf"(?i)(?<![/\w.\-])({_NAME})(\s*=>?\s*){_VALUE}", rf"\1\2{MASK}"),
        (rf"(?i)(?<![/\w.\-])((?:secret|passw(?:or)?d|pwd|passphrase)\s*:\s+){_VALUE}", rf"\1{MASK}"),
        # The signature of a shared access URL of Azure.
        (r"(?i)([?&;]sig=)[^\s&;\"']+", rf"\1{MASK}"),
        (r"(?i)\b(authorization\s*[:=]\s*\w+|bearer)\s+[A-Za-z0-9+/=_.~\-]{8,}", rf"\1 {MASK}"),
        # The id of an AWS access key, and a JSON web token.
        (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", MASK),
        (r"\beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*", MASK),
    )
    return tuple((re.compile(pattern), replacement) for pattern, replacement in rules)


def mask(text: str) -> str:
    """The text with passwords in URLs, values of secret settings, access keys, tokens and private keys replaced."""
    for pattern, replacement in _rules():
        text = pattern.sub(replacement, text)
    return text


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return re.fullmatch(_NAME, name, re.IGNORECASE) is not None


def mask_setting(name: str, value: str) -> str:
    """The value of a setting, for a message."""
    return MASK if is_secret_name(name) else mask(value)
