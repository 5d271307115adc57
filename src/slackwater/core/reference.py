"""Names of a pipeline or application with its arguments, and references to secrets, which can be recorded."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from slackwater.core.masking import KNOWN_SECRETS


def absolute_path(typed: str | Path) -> Path:
    """Expands ``~`` and ``~user``; an unknown user's stays, as in a shell."""
    path = Path(typed)
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        return path.absolute()


_SEPARATOR = " -- "


def reference_of(code: str, arguments: Sequence[str]) -> str:
    """``FILE``, or ``FILE -- ARGUMENTS`` in shell quoting, for ledger and plans."""
    return f"{code}{_SEPARATOR}{shlex.join(arguments)}" if arguments else code


def split_reference(reference: str) -> tuple[str, tuple[str, ...]]:
    code, _, arguments = reference.partition(_SEPARATOR)
    return code, tuple(shlex.split(arguments))


_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")
EXPECTED = '"env:NAME" or "file:PATH"'


def is_reference(value: object) -> bool:
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def read_secret(reference: str) -> str | None:
    """The secret without the end of its line."""
    kind, _, name = reference.partition(":")
    try:
        read = os.environ.get(name) if kind == "env" else absolute_path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError):
        return None
    KNOWN_SECRETS.remember("password", read)
    return read or None


def what_is_missing(reference: str) -> tuple[str, str]:
    kind, _, name = reference.partition(":")
    if kind == "env":
        return f"an environment variable {name}", f"export {name}=..."
    return f"a readable file {name} with the secret", "create the file, readable by this user only"
