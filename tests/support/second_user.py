"""Commands as a user who may read a folder but not write to it.

Root ignores permissions. There the folder is given to another account, and the command runs without root's
capabilities, as an ordinary user who does not own the folder. Elsewhere the write permission is taken away.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NOBODY = 65534
_WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


def make_readable_only(folder: Path) -> None:
    """Everybody may read the folder with all that is in it; only its owner, another account, may write."""
    for path in _below(folder):
        readable = 0o755 if path.is_dir() else 0o644
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
            path.chmod(readable)
        else:
            path.chmod(readable & ~0o222)


def make_writable_again(folder: Path) -> None:
    for path in _below(folder):
        if os.geteuid() == 0:
            os.chown(path, 0, 0)
        path.chmod(0o755 if path.is_dir() else 0o644)


def slackwater_as_reader(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """``slackwater ...``, run in ``folder`` by a user without special rights."""
    command = as_reader(sys.executable, "-m", "slackwater", *arguments)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def as_reader(*command: str) -> list[str]:
    """The command line that runs a command as a user without special rights."""
    return [*(_WITHOUT_CAPABILITIES if os.geteuid() == 0 else ()), *command]


def _below(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.rglob("*")
