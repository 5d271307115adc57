"""Replaces secrets in text with ``***`` before it is shown, logged or stored.

Secrets that this process has read are replaced by value (``core/known_secrets``). The rules here are for texts of other
programs, which can contain secrets that this process has never seen. Masking too much costs a word of a message,
masking too little a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from slackwater.core.known_secrets import KNOWN_SECRETS, SENSITIVE_NAME

MASK = "***"

_LONGEST_SECRET = 4096

_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&"'(){}\[\]<>]+)"""
_REFERENCE = r"""(?!["']?env:[a-z_]\w*["']?(?:[\s,;)]|\Z))"""
"""Before a value that is none: where a secret is, such as a hint names it."""
_LOGIN = r"""(?i)\b[a-z][a-z0-9+.\-]{0,30}://[^\s/:@"]*:"""


def _without_password(word: re.Match[str]) -> str:
    """``scheme://user:***@`` for a word up to its last @: an unescaped password may contain / and @."""
    login = re.search(_LOGIN, word[0])
    return f"{word[0][: login.end()]}{MASK}@" if login else word[0]


@cache
def _rules() -> tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]:
    """Patterns with their replacements, in order. Compiled at the first use: most commands never need them.

    None may start again at each character of what an earlier start has looked through: any text can get here.
    """
    rules = (
        (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", MASK),
        (r'(?<![^\s"])[^\s"]*@', _without_password),
        # Both parts are a key where a store or a web server is meant, and one alone may be a token.
        (r"""(?i)(\b(?:s3[an]?|gs|gcs|https?)://)[^\s/@"']+@""", rf"\1{MASK}@"),
        # --name value, as in a command line.
        (rf"(?i)(?<![\w.\-])(--{SENSITIVE_NAME}\s+)(?!-){_VALUE}", rf"\1{MASK}"),
        # "name": "value", as in JSON and in Python dictionaries.
        (rf"""(?i)(["'])({SENSITIVE_NAME})(\1\s*[:=]\s*){_VALUE}""", rf'\1\2\3"{MASK}"'),
        # name=value, also in the query of a URL. After a / it is a partition folder of a table, such as /token=7/.
        # %3D is the = of an ODBC string in the query of a URL; ODBC puts values in braces.
        (rf"(?i)(?<![/\w.\-])({SENSITIVE_NAME})(\s*(?:=>?|%3D)\s*){_REFERENCE}{_VALUE}", rf"\1\2{MASK}"),
        (r"(?i)(?<![/\w.\-])((?:pwd|password)\s*=\s*)\{[^{}]*\}", rf"\1{MASK}"),
        (rf"(?i)(?<![/\w.\-])((?:secret|passw(?:or)?d|pwd|passphrase)\s*:\s+){_VALUE}", rf"\1{MASK}"),
        # The signature of a shared access URL of Azure.
        (r"(?i)([?&;]sig=)[^\s&;\"']+", rf"\1{MASK}"),
        (r"(?i)\b(authorization\s*[:=]\s*\w+|bearer)\s+[A-Za-z0-9+/=_.~\-]{8,}", rf"\1 {MASK}"),
        # The id of an AWS access key, and a JSON web token.
        (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", MASK),
        (
            r"(?<![\w\-])(?=[\w\-]++\.[\w\-]{8,}+\.)([\w\-]*?)\beyJ[\w\-]{8,}+\.[\w\-]++\.[\w\-]*+",
            rf"\1{MASK}",
        ),
    )
    return tuple((re.compile(pattern), replacement) for pattern, replacement in rules)


def mask(text: str) -> str:
    """The text with passwords in URLs, values of secret settings, access keys, tokens and private keys replaced."""
    text = KNOWN_SECRETS.replaced(text, MASK)
    for pattern, replacement in _rules():
        text = pattern.sub(replacement, text)
    return text


def brief(text: str, most: int = 80) -> str:
    """The beginning of a text, for one line of a message. Masked first: what is cut may be what shows a secret."""
    masked = mask(text[: most + _LONGEST_SECRET])
    return masked if len(masked) <= most else f"{masked[:most]}..."


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return re.fullmatch(SENSITIVE_NAME, name, re.IGNORECASE) is not None


def mask_setting(name: str, value: str) -> str:
    """The value of a setting, for a message."""
    return MASK if is_secret_name(name) else mask(value)
