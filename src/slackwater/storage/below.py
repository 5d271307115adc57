"""Stores over a different store, and a folder of a store as a store."""

import errno
from collections.abc import Iterable, Iterator

from slackwater.storage.protocols import READ_LIMIT, Entry, Folder, ReadStore, StoreTraits, WriteStore


class StoreOver:
    """Base of stores that pass calls on to another store, with different paths if needed."""

    __slots__ = ()
    store: ReadStore

    @property
    def location(self) -> str:
        return self.store.location

    @property
    def traits(self) -> StoreTraits:
        return self.store.traits

    def list(self, path: str = "") -> tuple[Entry, ...]:
        return self.store.list(self._full(path))

    def folders(self, path: str = "") -> Iterator[Folder]:
        return self.store.folders(self._full(path))

    def size(self, path: str) -> int:
        return self.store.size(self._full(path))

    def modified_ms(self, path: str) -> int | None:
        return self.store.modified_ms(self._full(path))

    def local_path(self, path: str) -> str | None:
        return self.store.local_path(self._full(path))

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        return self.store.read(self._full(path), limit)

    def read_pieces(self, path: str) -> Iterator[bytes]:
        return self.store.read_pieces(self._full(path))

    def exists(self, path: str) -> bool:
        return self.store.exists(self._full(path))

    def written_ms(self) -> Iterator[tuple[str, int]]:
        return self.store.written_ms()

    def _full(self, path: str) -> str:
        return path


class Below(StoreOver):
    """A ``WriteStore`` over ``folder`` of a store; the folder need not exist."""

    store: WriteStore

    def __init__(self, store: WriteStore, folder: str) -> None:
        self.store = store
        self._folder = folder.strip("/")

    @property
    def location(self) -> str:
        return f"{self.store.location.rstrip('/')}/{self._folder}"

    def folders(self, path: str = "") -> Iterator[Folder]:
        for found in super().folders(path):
            yield found._replace(path=found.path.removeprefix(self._folder).lstrip("/"))

    def exists(self, path: str) -> bool:
        return ".." not in path.split("/") and self.store.exists(self._full(path))

    def written_ms(self) -> Iterator[tuple[str, int]]:
        for path, written_ms in self.store.written_ms():
            if path.startswith(f"{self._folder}/"):
                yield path[len(self._folder) + 1 :], written_ms

    def write(self, path: str, data: bytes) -> None:
        self.store.write(self._full(path), data)

    def write_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        self.store.write_pieces(self._full(path), pieces)

    def rename(self, source: str, target: str) -> None:
        self.store.rename(self._full(source), self._full(target))

    def delete(self, path: str) -> None:
        self.store.delete(self._full(path))

    def create(self, path: str, data: bytes) -> None:
        self.store.create(self._full(path), data)

    def append(self, path: str, data: bytes, at: int) -> None:
        self.store.append(self._full(path), data, at)

    def copy_from(self, source: ReadStore, folder: str, names: Iterable[str]) -> None:
        copy_pieces(source, self, folder, names)

    def rename_folder(self, source: str, target: str) -> None:
        self.store.rename_folder(self._full(source), self._full(target))

    def delete_tree(self, path: str = "") -> None:
        self.store.delete_tree(self._full(path))

    def _full(self, path: str) -> str:
        if ".." in path.split("/"):
            raise FileNotFoundError(errno.ENOENT, "not a path below the folder", path)
        return f"{self._folder}/{path}".rstrip("/")


def copy_pieces(source: ReadStore, target: WriteStore, folder: str, names: Iterable[str]) -> None:
    for path in (f"{folder}/{name}".lstrip("/") for name in names):
        target.write_pieces(path, source.read_pieces(path))
