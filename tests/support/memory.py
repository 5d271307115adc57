"""Folders in memory: a test that kills at each change of a file would wait for the disk most of its time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder in memory where there is such a place, else among the temporary ones: a killed process loses neither."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder gets a unique name
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)
