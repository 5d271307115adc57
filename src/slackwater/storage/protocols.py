"""The store interfaces, and the differences between stores as data."""

import errno
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

READ_LIMIT = 1 << 30
"""The most bytes that a read returns unless the caller sets a limit: logs of checkpoints and sinks are far smaller."""


class FileTooLarge(OSError):
    """The file is larger than a read may return. ``size`` is ``None`` if only "too large" is known."""

    def __init__(self, path: str, limit: int, size: int | None) -> None:
        super().__init__(errno.EFBIG, f"more than {limit} bytes", path)
        self.limit = limit
        self.size = size


LEFTOVER = ".slackwater.tmp"
"""The suffix of hidden names of unfinished writes; Spark ignores it, and no other program uses it."""


def hadoop_checksum_path(path: str) -> str:
    """The path ``.N.crc`` next to ``N``: written and, on reading, checked by Hadoop's local file system."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


class StoreTraits(NamedTuple):
    """Guarantees of a store. Every store replaces a whole file atomically on put.

    ``remote`` stores are listed concurrently. ``atomic_rename`` is false on object stores, which copy and delete.
    ``atomic_replace`` is false if an existing file cannot be overwritten atomically (HDFS): a killed write can leave
    the old content under a name that this store reads but Spark does not. ``exclusive_create``: one of two concurrent
    creators of a file fails. ``moves_directories``: directories are renamed or exchanged atomically. ``lists_at_once``:
    listings are consistent after a write. ``durable``: files survive the process.
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
    """An entry of a listing. ``size`` is ``None`` if the listing does not include it."""

    name: str
    is_dir: bool
    size: int | None = None


class Folder(NamedTuple):
    """A directory of a walk: plain names, because a checkpoint can have 60,000 of them.

    ``path`` is relative to the store's root. ``sizes`` goes with ``files``; ``None`` on local disks: a ``stat`` per
    file would cost five times the walk.
    """

    path: str
    directories: tuple[str, ...]
    files: tuple[str, ...]
    sizes: tuple[int, ...] | None = None


class ReadStore(Protocol):
    """Files below a root. Paths are relative, with ``/``; ``""`` is the root."""

    @property
    def location(self) -> str:
        """The root as a user would write it."""

    @property
    def traits(self) -> StoreTraits: ...

    def list(self, path: str = "") -> tuple[Entry, ...]:
        """The entries of a directory, unordered; empty if it does not exist."""

    def folders(self, path: str = "") -> Iterator[Folder]:
        """Every directory below ``path``, ``path`` first; none if absent."""

    def size(self, path: str) -> int:
        """The size in bytes. Raises ``FileNotFoundError``."""

    def modified_ms(self, path: str) -> int | None:
        """The write time in epoch milliseconds; ``None`` if the store does not show it.

        Raises ``FileNotFoundError``.
        """

    def local_path(self, path: str) -> str | None:
        """The path for libraries that need a local path; ``None`` on a remote store."""

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """The content. Raises ``FileNotFoundError``, and ``FileTooLarge`` above ``limit`` bytes."""

    def read_pieces(self, path: str) -> Iterator[bytes]:
        """The content in pieces of bounded size. Raises ``FileNotFoundError`` at the first piece."""

    def exists(self, path: str) -> bool: ...

    def written_ms(self) -> Iterator[tuple[str, int]]:
        """Every file with its write time, in epoch milliseconds of the store."""


class WriteStore(ReadStore, Protocol):
    """A store that may be changed. A reader of a file sees either all of its old content or all of the new content."""

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a whole file, creating directories as needed."""

    def write_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        """``write`` without holding the file in memory. If ``pieces`` raises, the file is unchanged."""

    def rename(self, source: str, target: str) -> None:
        """Move a file; the target must not exist."""

    def delete(self, path: str) -> None:
        """Delete a file; no error if it is absent."""

    def create(self, path: str, data: bytes) -> None:
        """Create a file. Raises ``FileExistsError``; see ``exclusive_create`` of the traits."""

    def append(self, path: str, data: bytes, at: int) -> None:
        """Write ``data`` after the first ``at`` bytes and drop the rest. Only with the trait ``append``."""

    def copy_from(self, source: ReadStore, folder: str, names: Iterable[str]) -> None:
        """Copy files here from a store's folder, by the store's own copy or a link if possible.

        For files that are never changed in place: a hard link may be made.
        """

    def rename_folder(self, source: str, target: str) -> None:
        """Rename a directory atomically. Only with the trait ``moves_directories``."""

    def delete_tree(self, path: str = "") -> None:
        """Delete a directory and its content; no error if absent. A link is removed, not its target."""
