"""What is known of a stream when it is diagnosed: gathered once, each fact as it was found, or why it could not be.

A stream that Slackwater has recorded and a checkpoint that it has never seen are described alike: a fact that only the
ledger has is ``Unknown`` for the latter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, TypeVar

from slackwater.core.checkpoint import CheckpointReport, CommitEntry, Damage, OffsetEntry, SourceLog
from slackwater.core.marks import Marks
from slackwater.core.program import SourceShape
from slackwater.core.records import BatchRecord, RunRecord
from slackwater.core.snapshot import OutputSeen, Snapshot
from slackwater.core.state import StateInventory
from slackwater.core.verdict import StreamVerdict


class Unknown(NamedTuple):
    """A fact that could not be gathered: why, as the end of a sentence, and what would make it known."""

    reason: str
    how: str | None = None


_T = TypeVar("_T")
Fact: TypeAlias = _T | Unknown


@dataclass(frozen=True)
class CheckpointSeen:
    """The files of a checkpoint. Batch ids are those of file names; entries are ``None`` where absent or damaged.

    ``offset_before`` is the entry before the newest one in ``offsets/``. ``damage`` is all that the report and the
    check of what a start reads have found, ``start_damage`` only the latter. ``folders`` has the names of the files of
    each folder, by its path in the checkpoint. ``atomic_rename``: the store renames a file in one step.
    """

    report: CheckpointReport
    offset_ids: tuple[int, ...] = ()
    commit_ids: tuple[int, ...] = ()
    newest_offset: OffsetEntry | None = None
    offset_before: OffsetEntry | None = None
    newest_commit: CommitEntry | None = None
    start_damage: tuple[Damage, ...] = ()
    folders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    inventory: StateInventory = field(default_factory=StateInventory)
    atomic_rename: bool = True

    @property
    def location(self) -> str:
        """The checkpoint, as the user would write it."""
        return self.report.location

    @property
    def marks(self) -> Marks:
        """The marks without the sink's."""
        return self.report.marks

    @property
    def planned(self) -> int:
        """The newest batch in ``offsets/``, -1 for none."""
        return self.report.marks.planned

    @property
    def committed(self) -> int:
        """The newest batch in ``commits/``, -1 for none."""
        return self.report.marks.committed

    @cached_property
    def damage(self) -> tuple[Damage, ...]:
        """All damage, each path and kind once."""
        found = {(item.path, item.kind): item for item in (*self.start_damage, *self.report.damage)}
        return tuple(found.values())

    def damaged(self, path: str) -> Damage | None:
        """The first damage of this file."""
        return next((item for item in self.damage if item.path == path), None)

    def damage_below(self, folder: str) -> Iterator[Damage]:
        """Damage of files in a folder, or deeper."""
        return (item for item in self.damage if item.path.startswith(f"{folder}/"))

    def has(self, path: str) -> bool:
        """Whether a file is there."""
        folder, _, name = path.rpartition("/")
        return name in self.folders.get(folder, ())


class ChangedFile(NamedTuple):
    """A file of a source that is not as it was read: its times in epoch milliseconds, and bytes where they differ."""

    path: str
    read_ms: int
    found_ms: int
    read_bytes: int | None = None
    found_bytes: int | None = None


class Unserved(NamedTuple):
    """What a source does not have of the position of the next batch.

    ``problem`` is the word of its kind for it, for which checks look. ``place`` is the part of the source, such as a
    partition, ``records`` how many records or versions it concerns, 0 where that is not counted.
    """

    problem: str
    place: str
    expected: str
    found: str
    records: int = 0


class ReadOutput(NamedTuple):
    """The output of a file sink that a source reads: where it is, and ``elsewhere`` as in ``SinkFacts``."""

    location: str
    elsewhere: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """One source of the checkpoint. ``start`` and ``end`` are offsets as Spark wrote them.

    They bound the planned next batch; where none is planned both are the end of the newest batch. ``entries`` are the
    numbers in its own log, ``compacted`` those of them that are compacted. ``missing_files`` are the files of the
    planned next batch that are gone. ``changed_files`` are those of the newest listed files that were written later
    than listed, or have other bytes, ``removed_files`` those that were read and do not exist any more.
    ``too_old_files`` are next to listed ones, unread, and older than the source reads. ``outputs`` are the outputs of
    file sinks that have the newest listed files. ``unserved`` is what the source does not have of its position.
    ``shape`` is the source in the recorded program of the query.
    """

    name: str
    kind: str
    start: str | None
    end: str | None
    log: SourceLog | None = None
    entries: tuple[int, ...] = ()
    compacted: tuple[int, ...] = ()
    missing_files: Fact[tuple[str, ...]] = ()
    changed_files: Fact[tuple[ChangedFile, ...]] = ()
    removed_files: Fact[tuple[str, ...]] = ()
    too_old_files: Fact[tuple[str, ...]] = ()
    outputs: Fact[tuple[ReadOutput, ...]] = ()
    unserved: Fact[tuple[Unserved, ...]] = ()
    shape: SourceShape | None = None


@dataclass(frozen=True, slots=True)
class SinkFacts:
    """The output. ``identity`` is that of the sink; ``written`` is the newest batch that it shows, ``None`` for none.

    ``newest`` is the last change of the output by any other means, where the kind of sink can tell. ``elsewhere`` are
    the folders outside of the output in which its log lists files, each with their number; ``listed`` is the number of
    all files that it lists. ``transactions`` are the newest numbers of the applications that wrote to it, ``None``
    where the output does not list them.
    """

    identity: Mapping[str, str]
    seen: OutputSeen
    written: int | None
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    listed: int = 0
    transactions: Mapping[str, int] | None = None


class Judged(NamedTuple):
    """The code compared with the kept state, and what can be done about it, the safest way first.

    ``settings`` are the values that its session has of the settings which Spark takes from a checkpoint.
    """

    verdict: StreamVerdict
    ways: tuple[str, ...] = ()
    settings: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class HistoryFacts:
    """What the ledger has recorded: the runs, newest first, and the newest batches, newest last.

    ``offsets`` are its copies of the two newest entries of ``offsets/``, by batch.
    """

    runs: tuple[RunRecord, ...] = ()
    batches: tuple[BatchRecord, ...] = ()
    offsets: Mapping[int, OffsetEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts about one stream.

    ``snapshot`` is also there for a checkpoint that was never recorded, with what its files show; ``recorded`` tells
    the two apart. ``code`` is compared with the kept state; ``None`` where that was not asked for.
    """

    name: str
    checkpoint: CheckpointSeen
    snapshot: Snapshot
    recorded: bool
    sources: tuple[SourceFacts, ...]
    sink: Fact[SinkFacts]
    history: Fact[HistoryFacts]
    code: Fact[Judged] | None = None

    @property
    def batches(self) -> tuple[BatchRecord, ...]:
        """The recorded batches of the generation in use, newest last; none where the history is unknown."""
        if isinstance(self.history, Unknown):
            return ()
        generation = self.snapshot.generation.number
        return tuple(one for one in self.history.batches if one.generation == generation)

    @property
    def marks(self) -> Marks:
        """The number line, with the sink's mark."""
        return self.snapshot.marks
