"""The two interfaces of a store, and the differences between stores as data."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

READ_LIMIT = 1 << 30
"""Bytes that a read returns at most unless the caller sets a limit: logs of checkpoints and sinks are far smaller."""


class FileTooLarge(OSError):
    """A file has more bytes than the reader was ready to take; ``size`` is ``None`` where only that much is known."""

    def __init__(self, path: str, limit: int, size: int | None) -> None:
        super().__init__(errno.EFBIG, f"more than {limit} bytes", path)
        self.limit = limit
        self.size = size


LEFTOVER = ".slackwater.tmp"
"""How the hidden name of a write ends that a store has not finished; Spark ignores it, and no other program uses it."""


def hadoop_checksum_path(path: str) -> str:
    """``.N.crc`` next to ``N``: written by Hadoop's local file system, and checked by it when the file is read."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


class StoreTraits(NamedTuple):
    """What code may rely on. A put of a whole file replaces it in one step on every store.

    ``remote`` stores are listed concurrently. ``atomic_rename`` is false on object stores, which copy and delete.
    ``atomic_replace`` is false where a file that exists cannot be overwritten in one step (HDFS): there a write that is
    killed can leave the old content under another name, which this store reads but Spark does not. ``append``: bytes
    can be added to a file. ``exclusive_create``: of two writers that create a file one fails. ``moves_directories``:
    a directory gets another name, or two of them change places, in one step. ``lists_at_once``: a listing has what was
    written before it. ``durable``: what was written is there after the process has ended.
    """

    remote: bool
    atomic_rename: bool
    atomic_replace: bool
    append: bool = False
    exclusive_create: bool = False
    moves_directories: bool = False
    lists_at_once: bool = True
    durable: bool = True


OBJECT_STORE = StoreTraits(remote=True, atomic_rename=False, atomic_replace=True)
"""A put is atomic, a rename is a copy and a delete."""
HADOOP = StoreTraits(remote=True, atomic_rename=True, atomic_replace=False)
"""A rename is atomic, and refuses a target that exists."""


class Entry(NamedTuple):
    """A name in a listing. ``size`` is ``None`` if the listing does not include it."""

    name: str
    is_dir: bool
    size: int | None = None


class Folder(NamedTuple):
    """One directory of a walk: plain names, because a checkpoint can have 60,000 of them.

    ``path`` is relative to the root of the store. ``sizes`` goes with ``files`` and is ``None`` where the listing does
    not include sizes (local disks: one ``stat`` for each file would cost five times the walk).
    """

    path: str
    directories: tuple[str, ...]
    files: tuple[str, ...]
    sizes: tuple[int, ...] | None = None


class ReadStore(Protocol):
    """Bytes below one root. Paths are relative to it, with ``/``; ``""`` is the root itself."""

    @property
    def location(self) -> str:
        """The root as a user would write it: a local path or a URI."""

    @property
    def traits(self) -> StoreTraits:
        """What this store promises."""

    def list(self, path: str = "") -> tuple[Entry, ...]:
        """The names in a directory, unordered; empty where there is no such directory."""

    def folders(self, path: str = "") -> Iterator[Folder]:
        """Every directory below ``path`` with its names, ``path`` first; none where it is absent."""

    def size(self, path: str) -> int:
        """Bytes of one file. Raises ``FileNotFoundError`` where it is absent."""

    def modified_ms(self, path: str) -> int | None:
        """When a file was last written, in epoch milliseconds; ``None`` where the store does not show it.

        Raises ``FileNotFoundError`` where it is absent.
        """

    def local_path(self, path: str) -> str | None:
        """The path of the file on this machine, for libraries that need one; ``None`` on a remote store."""

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """The whole file. Raises ``FileNotFoundError`` where it is absent, ``FileTooLarge`` above ``limit`` bytes."""

    def read_pieces(self, path: str) -> Iterator[bytes]:
        """The file in pieces of bounded size. Raises ``FileNotFoundError`` at the first piece if it is absent."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""

    def written_ms(self) -> Iterator[tuple[str, int]]:
        """Every file below the root with the time at which it was written, in epoch milliseconds of the store."""


class WriteStore(ReadStore, Protocol):
    """A store that may be changed. Whoever reads a file gets all of its old content or all of the new."""

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file, replacing the one there is, creating directories as needed."""

    def write_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        """As ``write``, without holding the whole file in memory. If ``pieces`` raises, nothing is put in place."""

    def rename(self, source: str, target: str) -> None:
        """Move one file; the target must not exist."""

    def delete(self, path: str) -> None:
        """Remove one file; an absent file is no error."""

    def create(self, path: str, data: bytes) -> None:
        """Write a new file. Raises ``FileExistsError`` where there is one; see ``exclusive_create`` of the traits."""

    def append(self, path: str, data: bytes, at: int) -> None:
        """Put ``data`` behind the first ``at`` bytes of a file, and drop what followed these.

        Only where the traits have ``append``: elsewhere whoever extends a file writes it whole.
        """

    def copy_from(self, source: ReadStore, folder: str, names: Iterable[str]) -> None:
        """Copy files of a folder of another store here, by the store's own copy or link where it has one.

        For files that nobody changes in place; a hard link is a copy then.
        """

    def rename_folder(self, source: str, target: str) -> None:
        """Give a directory another name in one step. Only where the traits have ``moves_directories``."""

    def delete_tree(self, path: str = "") -> None:
        """Remove a directory with all that is in it; an absent one is no error. Of a link only the link is removed."""
