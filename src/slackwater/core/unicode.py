"""Strings that a file system, a database and a JVM can all be given."""

from __future__ import annotations


def is_unicode(value: str) -> bool:
    """Whether a string is valid UTF-8 without NUL; Python keeps other bytes of a command line as surrogates."""
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
