"""Names a pipeline or application: a file or module, with an application's arguments."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path


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
