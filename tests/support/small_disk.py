"""A real disk that is soon full: a file system in memory of a few megabytes, which can be made larger."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class SmallDisk:
    folder: Path

    def grow(self, megabytes: int) -> None:
        """Give it more space, with all its files in place."""
        assert _as_root("mount", "-o", f"remount,size={megabytes}m", str(self.folder))


@contextmanager
def small_disk(megabytes: int) -> Iterator[SmallDisk]:
    """A file system of this size, for any user, within the block. Skips the test where none can be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="slackwater-disk-"))
    options = f"size={megabytes}m,mode=0777"
    try:
        if not _as_root("mount", "-t", "tmpfs", "-o", options, "slackwater-test", str(folder)):
            pytest.skip("no file system can be mounted: it needs root, or sudo without a password")
        try:
            yield SmallDisk(folder)
        finally:
            # A JVM may have a file open there.
            assert _as_root("umount", "--lazy", str(folder))
    finally:
        folder.rmdir()


def _as_root(*command: str) -> bool:
    sudo = () if os.geteuid() == 0 else ("sudo", "-n")
    try:
        return subprocess.run([*sudo, *command], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
