"""Replaces secrets in text with ``***`` before it is shown, logged or stored.

Secrets from this process's settings, options, environment or files are replaced by value (``KnownSecrets``), in any
form: JAAS, tuples, Scala maps, headers. Rules by name are for other programs' texts. Masking too much costs a word of a
message, too little a password.
"""

import base64
import html
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from urllib.parse import quote, quote_plus, unquote

from ahocorasick_rs import AhoCorasick, MatchKind

_SENSITIVE_WORD = (
    r"(?:secret|passw(?:or)?d|pwd|passphrase|token|credential|access[._-]?key|api[._-]?key|account[._-]?key"
    r"|private[._-]?key|x-amz-signature)"
)
SENSITIVE_NAME = rf"(?=[\w.\-]*?{_SENSITIVE_WORD})[\w.\-]++"
"""Matched only from its first character on: the work grows with the text. Names are Spark's ``spark.redaction.regex``,
extended.
"""

_SHORTEST = 4
"""Characters. Shorter values are parts of too many words."""
_SHORT = 8
"""Characters. Shorter values are replaced as whole words only: ``kafka`` is also a part of paths."""
_LONGEST = 64 * 1024

_QUOTED = r""""((?:[^"\\]|\\.)*+)"|'((?:[^'\\]|\\.)*+)'"""
_BARE = r"""([^\s,;&"'(){}\[\]<>]++)"""
_PART = re.compile(rf"""(?i)(?<![/\w.\-])["']?{SENSITIVE_NAME}["']?\s*+(?:=>?|:|%3D)\s*+(?:{_QUOTED}|{_BARE})""")
"""``name=value`` within a value: JAAS, a URL's query, JSON."""
_LOGINS = (
    re.compile(r"\b[A-Za-z][A-Za-z0-9+.\-]{0,30}://([^/:@]{0,256}):"),
    re.compile(r"(?i)\bjdbc:oracle:\w{1,16}:([^/@]{1,256})/"),
)
"""The part before the password in a word up to its last @: an unescaped password may contain / and @."""
_WORD_END = re.compile(r"[\s\"]+")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PLAIN = re.compile(
    r"(?i)true|false|none|null|default|required|[+-]?\d{1,9}(?:\.\d+)?|(?:env|file):.*|\*+|(?:[a-z_]\w*\.){2,}[A-Z]\w*"
    rf"|{_SENSITIVE_WORD}s?"
)
"""No secrets despite their settings' names: switches, numbers, references, provider classes.

Nor are words of the rules: replaced in ``fs.s3a.secret.key=x``, they would uncover x.
"""


class KnownSecrets:
    """Secret values in every encoding that a text can repeat."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._forms: list[str] = []
        self._search: AhoCorasick | None = None

    def remember(self, name: str, value: object) -> None:
        for given, login in _secrets_in(name, value) if isinstance(value, str) and len(value) <= _LONGEST else ():
            secret = _without_surrogates(given)
            if secret in self._values or len(secret) < _SHORTEST or _PLAIN.fullmatch(secret):
                continue
            self._values.add(secret)
            in_ascii = ascii(given)[1:-1]
            self._forms = sorted({*self._forms, in_ascii, *_forms(secret, _without_surrogates(login))})
            self._search = None

    def remember_all(self, settings: Mapping[str, object]) -> None:
        for name, value in settings.items():
            self.remember(name, value)

    def replaced(self, text: str, by: str) -> str:
        """The text without remembered secrets, in time that grows with the text only."""
        if not self._values:
            return text
        if self._search is None:
            self._search = AhoCorasick(self._forms, matchkind=MatchKind.LeftmostLongest)
        searched = _without_surrogates(text)
        parts, end = [], 0
        for index, start, stop in self._search.find_matches_as_indexes(searched):
            around = searched[max(0, start - 1) : start] + searched[stop : stop + 1]
            if len(self._forms[index]) < _SHORT and any(one.isalnum() or one == "_" for one in around):
                continue
            parts += [text[end:start], by]
            end = stop
        return "".join((*parts, text[end:])) if parts else text


def _without_surrogates(text: str) -> str:
    """In Python, bytes of the environment that are no UTF-8 are surrogates."""
    return text.encode("utf-8", "replace").decode()


def is_secret_name(name: str) -> bool:
    return re.fullmatch(SENSITIVE_NAME, name, re.IGNORECASE) is not None


def _secrets_in(name: str, value: str) -> Iterator[tuple[str, str]]:
    if is_secret_name(name) and not _is_path(value):
        yield value.strip(), ""
    for part in _PART.finditer(value):
        double, single, bare = part.groups()
        if bare is not None:
            yield bare, ""
            yield unquote(bare), ""
        else:
            yield _ESCAPED.sub(r"\1", single if double is None else double), ""
    for word in _WORD_END.split(value):
        address = word.rpartition("@")[0]
        for login in filter(None, (pattern.search(address) for pattern in _LOGINS)):
            secret = address[login.end() :]
            yield secret, login[1]
            yield unquote(secret), unquote(login[1])


def _is_path(value: str) -> bool:
    try:
        return value.startswith(("/", "~", "./")) and os.path.lexists(os.path.expanduser(value))  # noqa: PTH111 - text
    except (OSError, ValueError):
        return False


def _forms(secret: str, login: str) -> Iterable[str]:
    quotings = {
        secret,
        secret.replace('"', '\\"'),
        secret.replace("'", "\\'"),
        secret.replace("'", "''"),
        shlex.quote(secret),
        *_escaped(secret),
    }
    percent = (quote(secret, safe=""), quote(secret), quote_plus(secret))
    forms = {
        *quotings,
        # Quoted within a string that is quoted itself: a JAAS entry in JSON.
        *(outer for inner in quotings for outer in _escaped(inner)),
        html.escape(secret),
        html.escape(secret, quote=False),
        *percent,
        *(re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), one) for one in percent),
    }
    for plain in (secret, *([f"{login}:{secret}"] if login else [])):
        data = plain.encode()
        forms |= {base64.b64encode(data).decode().rstrip("="), base64.urlsafe_b64encode(data).decode().rstrip("=")}
    return forms


def _escaped(text: str) -> tuple[str, ...]:
    """The text in a string of JSON or Python, whose ``repr`` escapes a quote only if both kinds occur."""
    return (
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        repr(f"\"'{text}")[4:-1],
    )


def _of_this_process() -> KnownSecrets:
    """Secrets in the environment and in arguments. A value follows its option, or, by mistake, its setting: ``--conf
    NAME VALUE``.
    """
    known = KnownSecrets()
    known.remember_all(os.environ)
    for before, option, argument in zip(["", "", *sys.argv], ["", *sys.argv], sys.argv, strict=False):
        is_named = option.startswith("-") or before == "--conf"
        known.remember(option.rpartition("=")[2].lstrip("-") if is_named else "", argument)
    return known


KNOWN_SECRETS = _of_this_process()
"""Whatever reads a setting, an option or a referenced secret remembers it here."""


MASK = "***"

_LONGEST_SECRET = 4096

_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&"'(){}\[\]<>]+)"""
_REFERENCE = r"""(?!["']?env:[a-z_]\w*["']?(?:[\s,;)]|\Z))"""
_LOGIN = r"""(?i)\b[a-z][a-z0-9+.\-]{0,30}://[^\s/:@"]*:"""


def _without_password(word: re.Match[str]) -> str:
    login = re.search(_LOGIN, word[0])
    return f"{word[0][: login.end()]}{MASK}@" if login else word[0]


@cache
def _rules() -> tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]:
    """Ordered patterns, compiled at the first use. None may rescan from each character: any text can get here."""
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
        (r"(?<![\w\-])(?=[\w\-]++\.[\w\-]{8,}+\.)([\w\-]*?)\beyJ[\w\-]{8,}+\.[\w\-]++\.[\w\-]*+", rf"\1{MASK}"),
    )
    return tuple((re.compile(pattern), replacement) for pattern, replacement in rules)


def mask(text: str) -> str:
    """The text without passwords in URLs, secret settings, access keys, tokens and private keys."""
    text = KNOWN_SECRETS.replaced(text, MASK)
    for pattern, replacement in _rules():
        text = pattern.sub(replacement, text)
    return text


def brief(text: str, most: int = 80) -> str:
    """The beginning of a text for a message, masked first: the cut part may mark a secret."""
    masked = mask(text[: most + _LONGEST_SECRET])
    return masked if len(masked) <= most else f"{masked[:most]}..."


def mask_setting(name: str, value: str) -> str:
    return MASK if is_secret_name(name) else mask(value)
