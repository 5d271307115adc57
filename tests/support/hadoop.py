"""A file system in memory that renames as HDFS does, and fails where a test wants it to."""

from collections.abc import Callable
from typing import Any

from fsspec.implementations.memory import MemoryFileSystem

from slackwater.storage.protocols import StoreTraits

HADOOP = StoreTraits(remote=True, atomic_rename=True, atomic_replace=False)


class Lost(OSError):
    """The connection broke."""


class FailingFileSystem(MemoryFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """Memory that renames as HDFS does and fails, once or from then on, before or after its n-th call."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.fails_at: int | None = None
        self.after = False
        self.for_good = False

    def _do(self, name: str, act: Callable[[], Any]) -> Any:
        self.calls.append(name)
        number = len(self.calls)
        fails = self.fails_at is not None and (number == self.fails_at or (self.for_good and number > self.fails_at))
        if fails and not (self.after and number == self.fails_at):
            raise Lost(name)
        result = act()
        if fails:
            raise Lost(name)
        return result

    def pipe_file(self, path: str, value: bytes, **_: Any) -> None:
        self._do("pipe_file", lambda: super(FailingFileSystem, self).pipe_file(path, value))

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        def act() -> None:
            if path2 in self.store:
                raise FileExistsError(path2)
            if path1 not in self.store:
                raise FileNotFoundError(path1)
            self.store[path2] = self.store.pop(path1)

        self._do("mv", act)

    def rm_file(self, path: str) -> None:
        self._do("rm_file", lambda: super(FailingFileSystem, self).rm_file(path))

    def exists(self, path: str, **_: Any) -> bool:
        return bool(self._do("exists", lambda: super(FailingFileSystem, self).exists(path)))
