"""The kinds of the contract suite: a factory each. A new kind of sink adds a factory here and no test."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from slackwater.core.sink import Cut, Owner, Traits
from slackwater.sinks.all_of import combined_traits, identity_of
from slackwater.sinks.delta.sink import DELTA_TRAITS, app_of
from slackwater.sinks.files.sink import FILES_TRAITS
from slackwater.sinks.iceberg.output import ICEBERG_TRAITS
from tests.sinks import databases, delta_logs, iceberg_tables, made_up
from tests.sinks.kafka_kind import KafkaKind
from tests.sinks.manifests import listed_files, write_batches
from tests.support.kill_points import kill_points

LAST = 12
"""The newest batch of each example output."""


class SinkKind(Protocol):
    """How the suite makes and reads an output of one kind, without the code under test."""

    name: str
    traits: Traits
    owner: Owner | None
    """The owner of the example outputs."""
    removes_files: bool
    """Whether a cut removes the files that it names, and not only the mention of them."""
    forks: bool
    """Whether its code can run in a forked child, in which the suite kills it."""

    def identity(self, folder: Path) -> Mapping[str, str]:
        """What a stream would have recorded."""

    def write(self, folder: Path) -> Mapping[int, str]:
        """Write batches 0 to ``LAST``; what the ledger would have recorded of the sink's log."""

    def reset(self, folder: Path) -> None:
        """Make the output again what ``write`` made it."""

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        """The data that readers of the output see now. Raises if they see something that does not exist."""

    def everything(self, folder: Path) -> Mapping[str, bytes]:
        """All that is there: the data, and what the sink keeps next to it."""

    def cut_names(self, folder: Path, cut: Cut) -> set[str]:
        """Which of the names in ``visible`` a cut takes out."""

    def kill_points(self, function: Callable[[], object], below: Path, prepare: Callable[[], object]) -> Iterator[int]:
        """As ``tests.support.kill_points``, for each change that the kind makes."""


class FilesBelow:
    """Kinds whose output is a folder of files: what they have in common."""

    owner: Owner | None = None
    removes_files = True
    forks = True

    def everything(self, folder: Path) -> Mapping[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def reset(self, folder: Path) -> None:
        shutil.rmtree(folder)
        self.write(folder)

    def write(self, folder: Path) -> Mapping[int, str]:
        raise NotImplementedError

    def cut_names(self, _folder: Path, cut: Cut) -> set[str]:
        return set(cut.files)

    def kill_points(self, function: Callable[[], object], below: Path, prepare: Callable[[], object]) -> Iterator[int]:
        return kill_points(function, below, prepare)


class FilesKind(FilesBelow):
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

    def reader_uri(self, folder: Path, name: str) -> str:
        return (folder / name).as_uri()


class DeltaKind(FilesBelow):
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
        app = app_of(databases.OWNER.stream_id)
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

    def everything(self, folder: Path) -> Mapping[str, bytes]:
        return {**delta_logs.live_files(folder), "transactions": repr(delta_logs.transactions(folder)).encode()}

    def reader_uri(self, folder: Path, name: str) -> str:
        return (folder / name).as_uri()


class IcebergKind(FilesBelow):
    """An Iceberg table in a directory; ``created`` with a snapshot before batch 0, as Spark does."""

    traits = ICEBERG_TRAITS
    removes_files = False
    forks = False

    def __init__(self, name: str, *, created: bool = True) -> None:
        self.name = name
        self._created = created

    def identity(self, folder: Path) -> Mapping[str, str]:
        return {"kind": "iceberg", "path": str(folder)}

    def write(self, folder: Path) -> Mapping[int, str]:
        iceberg_tables.create(folder, snapshot=self._created)
        for batch in range(LAST + 1):
            iceberg_tables.write_batch(folder, databases.OWNER.stream_id, batch, files=batch % 3)
        return {}

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        return iceberg_tables.live_files(folder)

    def everything(self, folder: Path) -> Mapping[str, bytes]:
        """The rows and which snapshot has them; every change is a version of the metadata of its own."""
        current = iceberg_tables.metadata(folder)["current-snapshot-id"]
        return {**iceberg_tables.live_files(folder), "snapshot": repr(current).encode()}

    def reader_uri(self, folder: Path, name: str) -> str:
        return (folder / name).as_uri()


class MadeUpKind(made_up.DirectoryKind, FilesBelow):
    """The kind that exists in the tests only."""


class AllOfKind:
    """Several outputs of other kinds, in folders next to each other; what is visible has the number before its name."""

    name = "all_of"
    owner: Owner | None = None
    removes_files = True
    forks = True

    def __init__(self, *kinds: FilesKind) -> None:
        self._kinds = kinds
        self.traits = combined_traits([kind.traits for kind in kinds])

    def identity(self, folder: Path) -> Mapping[str, str]:
        return identity_of([kind.identity(below) for kind, below in self._each(folder)])

    def write(self, folder: Path) -> Mapping[int, str]:
        for kind, below in self._each(folder):
            kind.write(below)
        return {}  # The ledger has no copy of several logs.

    def reset(self, folder: Path) -> None:
        for kind, below in self._each(folder):
            kind.reset(below)

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        return self._joined({below.name: kind.visible(below) for kind, below in self._each(folder)})

    def everything(self, folder: Path) -> Mapping[str, bytes]:
        return self._joined({below.name: kind.everything(below) for kind, below in self._each(folder)})

    def cut_names(self, _folder: Path, cut: Cut) -> set[str]:
        return {f"{number}/{file}" for number, part in enumerate(cut.members, 1) for file in part.files}

    def kill_points(self, function: Callable[[], object], below: Path, prepare: Callable[[], object]) -> Iterator[int]:
        return kill_points(function, below, prepare)

    def _each(self, folder: Path) -> Iterator[tuple[FilesKind, Path]]:
        for number, kind in enumerate(self._kinds, 1):
            yield kind, folder / str(number)

    @staticmethod
    def _joined(found: Mapping[str, Mapping[str, bytes]]) -> dict[str, bytes]:
        return {f"{number}/{name}": data for number, held in found.items() for name, data in held.items()}


FileKind = FilesKind | DeltaKind | IcebergKind | MadeUpKind
FILE_KINDS: tuple[FileKind, ...] = (
    FilesKind("files", 10, purged=False),
    FilesKind("files-compacted-after-the-cut", 4, purged=True, partitioned=True),
    FilesKind("files-with-older-compactions", 3, purged=False),
    FilesKind("files-purged-in-part", 6, purged=True, spared=(9, 11)),
    DeltaKind("delta"),
    DeltaKind("delta-created-by-batch-0", created=False),
    DeltaKind("delta-with-another-writer", shared=True),
    IcebergKind("iceberg"),
    IcebergKind("iceberg-created-without-a-snapshot", created=False),
    MadeUpKind(),
)
KINDS: tuple[SinkKind, ...] = (
    *FILE_KINDS,
    databases.PostgresKind(),
    databases.SqliteKind(*databases.FUNCTION),
    databases.SqliteKind(*databases.JDBC),
    AllOfKind(FilesKind("first", 100, purged=False), FilesKind("second", 100, purged=False, partitioned=True)),
    KafkaKind(),
)
