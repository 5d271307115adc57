"""Files and folders that only their owner may read: a home holds settings, paths and rows.

A stricter umask is respected, and existing files keep their modes.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def create_private_file(path: Path) -> None:
    """Create a file with mode 0600; an existing file is left unchanged."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE))
    except FileExistsError:
        return


def make_private_folders(path: Path) -> None:
    """Create a folder and its parents with mode 0700; existing folders are left unchanged."""
    for folder in missing_folders(path):
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def missing_folders(path: Path) -> list[Path]:
    """The missing folders, from the outermost inwards; not recursive."""
    missing: list[Path] = []
    while not path.is_dir() and path != path.parent:
        missing.append(path)
        path = path.parent
    return missing[::-1]


def private_opener(path: str, flags: int) -> int:
    """For ``open(..., opener=private_opener)``: new files get mode 0600."""
    return os.open(path, flags, FILE_MODE)
