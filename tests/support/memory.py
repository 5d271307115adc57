"""Temporary folders in memory: a test that kills at each change of a file would wait for the disk most of its time.

A plugin of pytest: the folders of ``tmp_path`` are in memory where there is plenty. A killed process loses none.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_MEMORY = Path("/dev/shm")  # noqa: S108 - each run makes a folder of its own there
_SPARE_BYTES = 10 << 30
"""All tests leave 1 GiB there, and their JVMs use up to 6 GiB next to it."""
_ROOT = "PYTEST_DEBUG_TEMPROOT"
_LOCK = "lock"
"""Locked as long as the process runs whose tests use the folder."""
_made = pytest.StashKey[str]()
_held = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Have pytest make its temporary folders in memory, unless the user has named another place."""
    if _ROOT in os.environ or config.option.basetemp:
        return
    if _MEMORY.is_dir():
        _make_room()
        if _spare():
            folder = _new_folder()
            # The descriptor that holds the lock of a new folder; under its name there is no lock that nobody holds.
            lock = os.open(folder / "new", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / "new").rename(folder / _LOCK)
            config.stash[_held] = lock
            os.environ[_ROOT] = config.stash[_made] = str(folder)
            return
    vars(os)["fsync"] = _not_awaited


def _not_awaited(_descriptor: int) -> None:
    """Of folders on a disk: what is written outlives a kill, and no test cuts the power."""


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keep what failed tests have left, to be looked at until its memory is needed."""
    root = session.config.stash.get(_made, None)
    if root is not None and exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(root, ignore_errors=True)


def _new_folder() -> Path:
    """Its name is short, as messages wrap paths; other users, as whom some tests act, get through it."""
    for number in count():
        try:
            (folder := _MEMORY / f"t{number}").mkdir(mode=0o711)
        except FileExistsError:
            continue
        return folder
    raise AssertionError


def _make_room() -> None:
    """Remove what ended and killed runs have left, until there is plenty."""
    for folder in sorted(_MEMORY.glob("t[0-9]*")):
        if _spare():
            return
        try:
            with (folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        shutil.rmtree(folder, ignore_errors=True)


def _spare() -> bool:
    return min(shutil.disk_usage(_MEMORY).free, _available_bytes()) >= _SPARE_BYTES


def _available_bytes() -> int:
    found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) << 10 if found else 0


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder of its own for a test that makes several, in the place of ``tmp_path``."""
    with TemporaryDirectory(dir=os.environ.get(_ROOT)) as folder:
        yield Path(folder)
