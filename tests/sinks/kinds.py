"""The kinds of the contract suite: a factory each. A new kind of sink adds a factory here and no test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from slackwater.model.sink import Traits
from slackwater.sinks.files.output import FILES_TRAITS
from tests.sinks import made_up
from tests.sinks.manifests import listed_files, write_batches

LAST = 12
"""The newest batch of each example output."""


class SinkKind(Protocol):
    """How the suite makes and reads an output of one kind, without the code under test."""

    name: str
    traits: Traits

    def identity(self, folder: Path) -> Mapping[str, str]:
        """What a stream would have recorded."""

    def write(self, folder: Path) -> Mapping[int, str]:
        """Write batches 0 to ``LAST``; what the ledger would have recorded of the sink's log."""

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        """The data that readers of the output see now. Raises if they see something that does not exist."""

    def reader_uri(self, folder: Path, name: str) -> str:
        """How a log of Spark names a data file of the output."""


class FilesKind:
    """Spark's file sink; ``interval`` is that of its compaction, ``purged`` removes what Spark may purge."""

    traits = FILES_TRAITS

    def __init__(
        self, name: str, interval: int, *, purged: bool, partitioned: bool = False, spared: tuple[int, int] = (0, 0)
    ) -> None:
        self.name = name
        self._interval = interval
        self._purged = purged
        self._partitioned = partitioned
        self._spared = spared

    def identity(self, folder: Path) -> Mapping[str, str]:
        return {"kind": "files", "format": "json", "path": str(folder)}

    def write(self, folder: Path) -> Mapping[int, str]:
        return write_batches(
            folder,
            LAST,
            self._interval,
            purged=self._purged,
            partitioned=self._partitioned,
            side_files=True,
            spared=self._spared,
        )

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in listed_files(folder)}

    def reader_uri(self, folder: Path, name: str) -> str:
        return (folder / name).as_uri()


KINDS: tuple[SinkKind, ...] = (
    FilesKind("files", 10, purged=False),
    FilesKind("files-compacted-after-the-cut", 4, purged=True, partitioned=True),
    FilesKind("files-with-older-compactions", 3, purged=False),
    FilesKind("files-purged-in-part", 6, purged=True, spared=(9, 11)),
    made_up.DirectoryKind(),
)
