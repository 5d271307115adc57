r"""Escapes text that a terminal would obey, as ``\x1b``.

Paths, offsets, settings and leases can hold any character. ``ESC ] 52`` writes to the clipboard, ``ESC [ 2 J`` clears
the screen, and a bidirectional control shows a command in a different order than it will run.
"""

import os
import shlex


def is_unicode(value: str) -> bool:
    """Valid UTF-8 without NUL; Python keeps other bytes of a command line as surrogates."""
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def is_path(value: str) -> bool:
    """Whether the text has any bytes but NUL."""
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


_C1 = range(0x7F, 0xA0)
_BIDIRECTIONAL = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_OF_LINES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


_CONTROLS = {
    code: f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004
    for code in (*range(0x20), *_C1, *_BIDIRECTIONAL)
    if chr(code) not in "\n\t"
}
_IN_LINES = _CONTROLS | {ord(character): escape for character, escape in _OF_LINES.items()}
_OF_OTHERS = {code: escape for code, escape in _CONTROLS.items() if chr(code) != "\r"}


def printable(text: str) -> str:
    """Text with control characters escaped, except line feed and tab."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def one_line(text: str) -> str:
    """Escapes all control characters: a file's name cannot add a line to a message."""
    return text if text.isprintable() else text.translate(_IN_LINES)


def printable_bytes(output: bytes) -> bytes:
    """Output of another process, escaped; line feed, tab and carriage return stay."""
    return output.decode("utf-8", "surrogateescape").translate(_OF_OTHERS).encode("utf-8", "surrogateescape")


def quoted(word: str) -> str:
    """Quotes a word; control characters are as in ``$'...'`` of bash and zsh."""
    if one_line(word) == word:
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{one_line(escaped)}'"
