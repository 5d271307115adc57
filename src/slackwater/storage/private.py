"""Files and folders that only their owner may read: what a home holds has settings, paths and rows in it.

Modes are limits: a stricter umask is respected, and what exists keeps the mode its owner gave it.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def create_private_file(path: Path) -> None:
    """Create an empty file with mode 0600; an existing file is left as it is."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE))
    except FileExistsError:
        return


def make_private_folders(path: Path) -> None:
    """Create a folder and its missing parents, each with mode 0700; existing ones are left as they are."""
    for folder in missing_folders(path):
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def missing_folders(path: Path) -> list[Path]:
    """The folders that have to be made for ``path`` to be one, from the outermost inwards; not by recursion."""
    missing: list[Path] = []
    while not path.is_dir() and path != path.parent:
        missing.append(path)
        path = path.parent
    return missing[::-1]


def private_opener(path: str, flags: int) -> int:
    """For ``open(..., opener=private_opener)``: a file that is created gets mode 0600."""
    return os.open(path, flags, FILE_MODE)
