"""The kinds of the contract suite: a factory each. A new kind of sink adds a factory here and no test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from slackwater.model.sink import Owner, Traits
from slackwater.sinks.delta.output import DELTA_TRAITS, app_of
from slackwater.sinks.files.output import FILES_TRAITS
from tests.sinks import delta_logs, made_up
from tests.sinks.manifests import listed_files, write_batches

LAST = 12
"""The newest batch of each example output."""

OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
"""The stream that wrote the example outputs."""


class SinkKind(Protocol):
    """How the suite makes and reads an output of one kind, without the code under test."""

    name: str
    traits: Traits
    removes_files: bool
    """Whether a cut removes the files that it names, and not only the mention of them."""
    forks: bool
    """Whether its code can run in a forked child, in which the suite kills it."""

    def identity(self, folder: Path) -> Mapping[str, str]:
        """What a stream would have recorded."""

    def write(self, folder: Path) -> Mapping[int, str]:
        """Write batches 0 to ``LAST``; what the ledger would have recorded of the sink's log."""

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        """The data that readers of the output see now. Raises if they see something that does not exist."""

    def state(self, folder: Path) -> Mapping[str, object]:
        """All that must be as before when a cut was undone."""

    def reader_uri(self, folder: Path, name: str) -> str:
        """How a log of Spark names a data file of the output."""


class FilesKind:
    """Spark's file sink; ``interval`` is that of its compaction, ``purged`` removes what Spark may purge."""

    traits = FILES_TRAITS
    removes_files = True
    forks = True

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

    def state(self, folder: Path) -> Mapping[str, object]:
        return bytes_below(folder)

    def reader_uri(self, folder: Path, name: str) -> str:
        return (folder / name).as_uri()


class DeltaKind:
    """A Delta table; ``created`` by a commit before batch 0, ``shared`` with another writer that appends."""

    traits = DELTA_TRAITS
    removes_files = False
    forks = False

    def __init__(self, name: str, *, created: bool = True, shared: bool = False) -> None:
        self.name = name
        self._created = created
        self._shared = shared

    def identity(self, folder: Path) -> Mapping[str, str]:
        return {"kind": "delta", "path": str(folder)}

    def write(self, folder: Path) -> Mapping[int, str]:
        app = app_of(OWNER.stream_id)
        if self._created:
            delta_logs.commit(folder, delta_logs.TABLE)
        else:
            first = delta_logs.add(folder, "part-0.parquet", b"rows of batch 0")
            delta_logs.commit(folder, [*delta_logs.TABLE, {"txn": {"appId": app, "version": 0}}, first])
        for batch in range(0 if self._created else 1, LAST + 1):
            delta_logs.write_batch(folder, app, batch, files=batch % 3)
            if self._shared and batch % 4 == 2:
                delta_logs.commit(folder, [delta_logs.add(folder, f"other-{batch}.parquet", b"others")])
        return {}

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        return delta_logs.live_files(folder)

    def state(self, folder: Path) -> Mapping[str, object]:
        return {**delta_logs.live_files(folder), **delta_logs.transactions(folder)}

    def reader_uri(self, folder: Path, name: str) -> str:
        return (folder / name).as_uri()


def bytes_below(folder: Path) -> dict[str, bytes]:
    """Every file of an output with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


KINDS: tuple[SinkKind, ...] = (
    FilesKind("files", 10, purged=False),
    FilesKind("files-compacted-after-the-cut", 4, purged=True, partitioned=True),
    FilesKind("files-with-older-compactions", 3, purged=False),
    FilesKind("files-purged-in-part", 6, purged=True, spared=(9, 11)),
    DeltaKind("delta"),
    DeltaKind("delta-created-by-batch-0", created=False),
    DeltaKind("delta-with-another-writer", shared=True),
    made_up.DirectoryKind(),
)
