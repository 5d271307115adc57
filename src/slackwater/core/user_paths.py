"""Paths as people type them."""

from __future__ import annotations

from pathlib import Path


def absolute_path(typed: str | Path) -> Path:
    """The absolute path, with ``~`` and ``~user`` as the folder of a user; of no user, as it is, as in a shell."""
    path = Path(typed)
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        return path.absolute()
