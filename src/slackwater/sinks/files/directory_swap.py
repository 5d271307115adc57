"""The swap of an output of files on a local disk: the directories of both change places in one step."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from slackwater.core.sink import Swap
from slackwater.formats.compactible import SINK_LOG
from slackwater.sinks.common.aside import Aside
from slackwater.sinks.common.backup import damaged
from slackwater.sinks.files import swapping
from slackwater.sinks.files.manifest import Lines, Manifest

Left = tuple[str, ...] | None
"""Files of the staged output that no batch has written, as the record of a swap names them."""


class DirectorySwap:
    """What ``FilesOutput`` does for one operation, in the words of ``Swappable``."""

    def __init__(self, path: str, operation: str) -> None:
        self._path = path
        self._operation = operation

    @cached_property
    def _place(self) -> Aside:
        return Aside(self._path, self._operation)

    @property
    def folder(self) -> str:
        """The path of the staged output."""
        return str(self._place.folder)

    @property
    def is_started(self) -> bool:
        """Whether the swap has changed the output, or may have."""
        return self._place.is_swapped

    def stage(self, after: int, lines: Lines, manifest: Manifest, find: Callable[[str], str | None]) -> None:
        """Prepare the staged output; ``find`` returns the path below the output of the file that a URI names."""
        place = self._place
        place.check_exchangeable()
        if place.start():
            if after >= 0:
                swapping.fill(place, manifest, after, lines, find)
            # A stream that reads the output looks for the manifest once, at its start.
            (place.folder / SINK_LOG).mkdir(exist_ok=True)
            place.set_mark(place.folder, "staged")

    def check(self, swap: Swap) -> None:
        """Raises Refused unless the staged output is ready, and nothing of the real one is in its way."""
        swapping.check(self._place, swap)
        swapping.check_free(self._place, self._place.real, self._place.folder)

    def resume(self) -> None:
        """Finish what an interrupted swap was at, where the outputs cannot be looked at before."""
        self._place.finish_exchange()

    def swap(self, record: Callable[[Left], object]) -> None:
        """Put the staged output in the place of the real one. ``record`` makes durable that this starts."""
        place = self._place
        if not place.is_swapped:
            # Written again, as the staged output may have other files since a swap that was undone.
            record(swapping.only_in(place, place.folder, place.real))
            swapping.name_files_in(place, place.real)
            swapping.carry(place, place.real, place.folder)
        swapping.exchange(place)
        # What others have written to the old output between the first copy and the exchange.
        swapping.carry(place, place.folder, place.real)

    def check_back(self) -> None:
        """Raises Refused if the output that was replaced is not whole."""
        swapping.check_back(self._place)

    def swap_back(self, left: Left) -> None:
        """Undo ``swap``; ``left`` as it recorded it."""
        place = self._place
        place.finish_exchange()
        if not place.is_swapped and place.state != "staged":
            raise damaged(str(place.folder), "the output before the swap", place.state or "no folder")
        if place.is_swapped and left is not None:
            swapping.carry(place, place.real, place.folder, without=left)
        swapping.exchange_back(place)
        if left is not None:
            swapping.carry(place, place.folder, place.real, without=left)
        swapping.name_files_in(place, place.folder)

    def discard_staged(self) -> None:
        """Remove the staged output."""
        self._place.discard("building", "staged")

    def discard_replaced(self) -> None:
        """Remove the output that was replaced."""
        self._place.discard("replaced")
