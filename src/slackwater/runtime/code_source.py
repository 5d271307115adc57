"""A module's source in a file or archive (``--py-files``). Imports nothing."""

from __future__ import annotations

import stat
from functools import lru_cache
from pathlib import Path
from zipfile import BadZipFile, ZipFile


def is_source(file: Path) -> bool:
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except NotADirectoryError:
        # ``stat`` raises this for a path below a regular file, such as an archive.
        archive = _archive(file)
        return archive.is_file() and _name(file) in _names(archive, archive.stat().st_mtime_ns)
    except OSError:
        return False


def in_archive(file: Path) -> bool:
    """Return whether a module is in an archive: Python shows the archive file as its folder."""
    return not file.exists() and _archive(file).is_file()


def read_source(file: Path) -> bytes:
    if not in_archive(file):
        return file.read_bytes()
    try:
        with ZipFile(_archive(file)) as opened:
            return opened.read(_name(file))
    except (KeyError, BadZipFile, NotImplementedError, RuntimeError) as error:
        raise FileNotFoundError(f"cannot be read from the archive: {file}: {error}") from error


def _archive(file: Path) -> Path:
    return next(folder for folder in file.parents if folder.exists())


def _name(file: Path) -> str:
    return file.relative_to(_archive(file)).as_posix()


@lru_cache(maxsize=64)
def _names(archive: Path, _modified_ns: int) -> frozenset[str]:
    try:
        with ZipFile(archive) as opened:
            return frozenset(opened.namelist())
    except (OSError, BadZipFile):
        return frozenset()
