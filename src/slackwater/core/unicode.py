"""Strings that a file system, a database and a JVM can all be given."""

from __future__ import annotations

import os


def is_unicode(value: str) -> bool:
    """Whether a string is valid UTF-8 without NUL; Python keeps other bytes of a command line as surrogates."""
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def is_path(value: str) -> bool:
    """Whether the operating system takes a string for a path: any bytes but NUL."""
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False
