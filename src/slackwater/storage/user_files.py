"""Files named on a command line, to read or to write.

A file is written completely or not at all, and replaced only on request: the bytes go to a temporary file next to the
target, which is renamed after fsync. A device or pipe is written in place: ``--out /dev/stdout`` works.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from slackwater.core.errors import EnvironmentMissing, SlackwaterError, UsageError
from slackwater.storage.local import LocalStore, is_file
from slackwater.storage.open import AnyLocation, Location, open_read_store

__all__ = ["PRIVATE", "NewFile", "is_file", "read_text"]

PRIVATE = 0o600
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def read_text(path: AnyLocation) -> str:
    """The text of a file. Raises ``OSError``, also for a pipe or device, and ``UnicodeDecodeError``."""
    # A path can have a colon in its name, as the one of a batch has; only a string can be a URI.
    file = Location(path.absolute() if isinstance(path, Path) else path)
    return open_read_store(file.parent).read(file.name).decode()


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to write. ``force`` replaces an existing file; ``mode`` is subject to the umask."""

    path: Path
    force: bool = False
    mode: int = 0o666

    def check(self) -> None:
        """Raises UsageError (``out-exists``, ``out-unwritable``) if the file cannot be written.

        Call it before work whose result would be lost; ``open`` checks again.
        """
        with self._translated():
            self._is_stream()

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file; it is in place and on disk when the block ends without an error.

        Raises UsageError as ``check`` does, and EnvironmentMissing (``disk-full``).
        """
        with self._translated():
            if self._is_stream():
                # Without a reader, opening a pipe would wait for ever.
                descriptor = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
                os.set_blocking(descriptor, True)
                with os.fdopen(descriptor, "wb") as stream:
                    yield stream
                return
            # The target of a link is replaced, and not the link.
            target = self.path.resolve() if self.path.exists() else self.path
            import tempfile  # noqa: PLC0415 - whoever only reads needs none, and it brings random

            descriptor, name = tempfile.mkstemp(prefix=".slackwater-", suffix=".tmp", dir=target.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    yield file
                    file.flush()
                    # mkstemp creates files with mode 0600. A process can read its umask only by setting another one.
                    umask = os.umask(0o077)
                    os.umask(umask)
                    os.fchmod(file.fileno(), self.mode & ~umask)
                    os.fsync(file.fileno())
                self._swap_in(Path(name), target)
            finally:
                with suppress(FileNotFoundError):
                    Path(name).unlink()

    def _swap_in(self, temporary: Path, target: Path) -> None:
        if self.force:
            temporary.replace(target)
            return
        try:
            LocalStore(target.parent).rename(temporary.name, target.name)
        except FileExistsError as error:
            raise self._exists() from error

    def _is_stream(self) -> bool:
        try:
            kind = self.path.lstat().st_mode
        except FileNotFoundError:
            if not self.path.parent.is_dir():
                raise self._unwritable("there is no such folder") from None
            return False
        with suppress(OSError):  # a link to nothing is what it is itself
            kind = self.path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise self._unwritable("it is a folder")
        if stat.S_ISCHR(kind) or stat.S_ISFIFO(kind):
            return True
        if not self.force:
            raise self._exists()
        if not stat.S_ISREG(kind) and not stat.S_ISLNK(kind):
            raise self._unwritable("it is not a regular file")
        return False

    def _exists(self) -> UsageError:
        return UsageError(
            "out-exists",
            "The file exists and is not replaced",
            where=str(self.path),
            expected="a path where nothing is",
            hint="choose a different path, or replace the file with --force",
        )

    def _unwritable(self, reason: str) -> UsageError:
        return UsageError(
            "out-unwritable",
            "The file cannot be written",
            where=str(self.path),
            found=reason,
            hint="choose a path in a folder that exists and where you may write",
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SlackwaterError:
            raise
        except OSError as error:
            if error.errno in NO_SPACE:
                raise EnvironmentMissing(
                    "disk-full",
                    "There is no space left to write to",
                    where=str(self.path),
                    hint="free some space, or choose a path on a different disk",
                ) from error
            raise self._unwritable(error.strerror or str(error)) from error
