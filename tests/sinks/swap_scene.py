"""What the tests of swaps share: a swap is made and undone with the backup of one operation."""

from pathlib import Path
from typing import Protocol

from slackwater.core.sink import Swap
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import WriteStore


class _Output(Protocol):
    def swap(self, swap: Swap, backup: WriteStore, /) -> None: ...

    def swap_back(self, swap: Swap, backup: WriteStore, /) -> None: ...


class _Scene(Protocol):
    swap: Swap

    @property
    def output(self) -> _Output: ...

    @property
    def backup(self) -> LocalStore: ...


class SwapScene:
    """The base of a scene that has an ``output`` and plans a ``swap`` of it, in a folder of its own."""

    folder: Path

    @property
    def backup(self) -> LocalStore:
        return LocalStore(self.folder / "backup")

    def make(self: _Scene) -> None:
        self.output.swap(self.swap, self.backup)

    def undo(self: _Scene) -> None:
        self.output.swap_back(self.swap, self.backup)
