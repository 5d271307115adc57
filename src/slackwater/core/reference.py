"""What names a pipeline or an application: a file or a module, of an application with its own arguments."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path


def absolute_path(typed: str | Path) -> Path:
    """The absolute path, with ``~`` and ``~user`` as the folder of a user; of no user, as it is, as in a shell."""
    path = Path(typed)
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        return path.absolute()


_SEPARATOR = " -- "


def reference_of(code: str, arguments: Sequence[str]) -> str:
    """``FILE``, or ``FILE -- ARGUMENTS`` as a shell would take them: one string, as the ledger and plans record it."""
    return f"{code}{_SEPARATOR}{shlex.join(arguments)}" if arguments else code


def split_reference(reference: str) -> tuple[str, tuple[str, ...]]:
    """The file or module, and the arguments of the application."""
    code, _, arguments = reference.partition(_SEPARATOR)
    return code, tuple(shlex.split(arguments))
