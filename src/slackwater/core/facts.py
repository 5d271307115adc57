"""The facts for a diagnosis: each as it was found, or why it could not be.

For an unrecorded checkpoint, facts of the ledger are ``Unknown``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

from slackwater.core.checkpoint import (
    ChangedFile,
    CheckpointReport,
    CommitEntry,
    Damage,
    Marks,
    OffsetEntry,
    SourceLog,
    StateInventory,
)
from slackwater.core.errors import SlackwaterError
from slackwater.core.program import SourceShape
from slackwater.core.records import BatchRecord, RunRecord
from slackwater.core.snapshot import OutputSeen, Snapshot

if TYPE_CHECKING:
    # Its classes take a hundredth of the time of ``status``, which compares no code.
    from slackwater.core.verdict import StreamVerdict


Risk = Literal["loss", "duplicate", "skip", "wrong", "stuck", "none"]


class Severity(StrEnum):
    """``STOP``: must not be started. ``WARNING``: may, with care. ``INFO``: nothing is wrong."""

    STOP = "stop"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """``code`` is stable; ``text`` is a sentence; ``next`` is a command, if any. ``status`` ends with ``exit_code`` for
    its most urgent finding. ``advice`` is for remedies without a command.
    """

    code: str
    severity: Severity
    text: str
    risk: Risk = "none"
    goal: str | None = None
    next: str | None = None
    advice: str | None = None
    where: str | None = None
    expected: str | None = None
    found: str | None = None
    exit_code: int = 0


class Unknown(NamedTuple):
    """A fact that could not be read: the reason, as the end of a sentence, and a way to make it known."""

    reason: str
    how: str | None = None
    error: SlackwaterError | OSError | None = None


_T = TypeVar("_T")
Fact: TypeAlias = _T | Unknown


def known(fact: Fact[_T]) -> _T:
    """Raises the error with which it could not be read."""
    if isinstance(fact, Unknown):
        raise fact.error or ValueError(fact.reason)
    return fact


@dataclass(frozen=True)
class CheckpointSeen:
    """Batch ids come from file names; absent or damaged entries are ``None``.

    ``offset_before`` precedes the newest entry in ``offsets/``. ``start_damage`` is only from the check of a start's
    files. ``atomic_rename``: the store renames files atomically.
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
        return self.report.location

    @property
    def marks(self) -> Marks:
        return self.report.marks

    @property
    def planned(self) -> int:
        return self.report.marks.planned

    @property
    def committed(self) -> int:
        return self.report.marks.committed

    @cached_property
    def damage(self) -> tuple[Damage, ...]:
        """All damage, each path and kind once."""
        found = {(item.path, item.kind): item for item in (*self.start_damage, *self.report.damage)}
        return tuple(found.values())

    def damaged(self, path: str) -> Damage | None:
        return next((item for item in self.damage if item.path == path), None)

    def damage_below(self, folder: str) -> Iterator[Damage]:
        return (item for item in self.damage if item.path.startswith(f"{folder}/"))

    def has(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return name in self.folders.get(folder, ())


class Unserved(NamedTuple):
    """``problem`` is the kind's own word. ``place`` is a part such as a partition, ``records`` a number of records or
    versions, 0 if not counted.
    """

    problem: str
    place: str
    expected: str
    found: str
    records: int = 0


class SourceFacts(NamedTuple):
    """``start`` and ``end`` are offsets as Spark wrote them.

    They bound the planned next batch; without a planned batch both are the newest batch's end. ``entries`` and
    ``compacted`` are numbers in its log. ``missing_files`` are the planned batch's. Of the newest listed files,
    ``changed_files`` were written later than listed or have other bytes; ``removed_files`` were read and no longer
    exist. ``too_old_files`` are next to listed files, unread, and older than the source reads. ``outputs`` are file
    sinks with the newest listed files: location, and ``elsewhere`` as in ``SinkFacts``.
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
    outputs: Fact[tuple[tuple[str, Mapping[str, int]], ...]] = ()
    unserved: Fact[tuple[Unserved, ...]] = ()
    shape: SourceShape | None = None


class SinkFacts(NamedTuple):
    """``written`` is the newest batch that the output shows.

    ``newest`` is the last change by other means. ``elsewhere`` counts files outside of the output in its log, by
    folder; ``listed`` counts all. ``transactions`` are its writers' newest numbers, ``None`` if not listed.
    """

    identity: Mapping[str, str]
    seen: OutputSeen
    written: int | None
    elsewhere: Mapping[str, int] = MappingProxyType({})
    listed: int = 0
    transactions: Mapping[str, int] | None = None


class HistoryFacts(NamedTuple):
    """Runs are newest first, batches newest last. ``offsets`` copies the two newest entries of ``offsets/``."""

    runs: tuple[RunRecord, ...] = ()
    batches: tuple[BatchRecord, ...] = ()
    offsets: Mapping[int, OffsetEntry] = MappingProxyType({})


class Facts(NamedTuple):
    """An unrecorded checkpoint has a ``snapshot``, too; ``recorded`` tells the two apart."""

    name: str
    checkpoint: CheckpointSeen
    snapshot: Snapshot
    recorded: bool
    sources: tuple[SourceFacts, ...]
    sink: Fact[SinkFacts]
    history: Fact[HistoryFacts]
    code: Fact[StreamVerdict] | None = None

    @property
    def batches(self) -> tuple[BatchRecord, ...]:
        """The batches of the generation in use, newest last."""
        if isinstance(self.history, Unknown):
            return ()
        generation = self.snapshot.generation.number
        return tuple(one for one in self.history.batches if one.generation == generation)

    @property
    def marks(self) -> Marks:
        return self.snapshot.marks
