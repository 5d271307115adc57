"""What an inspection of a checkpoint found: everything the text page and the JSON document show.

Most are named tuples: a dozen dataclasses would take a twentieth of the time of a whole ``slackwater inspect``. Those
with a field ``index`` or ``count`` cannot be tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from slackwater.core.checkpoint_logs import SourceFile
from slackwater.core.damage import Damage
from slackwater.core.marks import Marks


class SparkVersion(NamedTuple):
    """The oldest Spark that writes what is there, and the evidence. ``at_least`` is ``None`` before 3.5."""

    at_least: str | None
    evidence: str


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """The position of a source at the end of a batch: Spark's string, ``None`` where it has no offset yet."""

    name: str
    index: int | None
    end: str | None


class NextBatch(NamedTuple):
    """The batch Spark will run. ``rerun``: its range is fixed already (``end``); ``replan``: only the start is."""

    id: int
    mode: str
    start: tuple[SourceEnd, ...]
    end: tuple[SourceEnd, ...] | None
    watermark_ms: int


class BatchLine(NamedTuple):
    """One batch of the logs. The readings are ``None`` where the entry is absent or damaged.

    ``settings`` are those that the plan pins, ``state_ids`` those of the state that the commit names (format 2).
    """

    id: int
    planned: bool
    committed: bool
    timestamp_ms: int | None = None
    watermark_ms: int | None = None
    next_watermark_ms: int | None = None
    sources: tuple[SourceEnd, ...] = ()
    settings: Mapping[str, str] | None = None
    state_ids: frozenset[str] = frozenset()


class SourceLog(NamedTuple):
    """The own log of a file source: its first and last entry and how many files it lists.

    ``differing`` are the names of older entries that list other files than the newest compacted entry has for them.
    """

    first: int
    last: int
    files: int | None
    entries: tuple[SourceFile, ...] = ()
    differing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One source. ``kind`` is inferred from its offsets and its log; ``initial`` is where it started, as a string."""

    index: int
    name: str
    kind: str
    log: SourceLog | None = None
    initial: str | None = None


class VersionRange(NamedTuple):
    """State versions that every partition can load, by file names; ``missing`` are those in between that cannot."""

    first: int | None
    last: int | None
    missing: tuple[int, ...] = ()


class StoreLine(NamedTuple):
    """One store of an operator over all partitions; ``rows`` where state was read, ``bytes`` where sizes are known."""

    name: str
    provider: str | None
    versions: VersionRange
    rows: int | None = None
    bytes: int | None = None
    families: tuple[str, ...] = ()


class OperatorLine(NamedTuple):
    """One stateful operator; ``inferred`` where its name was inferred from its stores (Spark 3.5 writes none)."""

    id: int
    name: str
    inferred: bool
    partitions: int
    stores: tuple[StoreLine, ...]
    properties: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class FileTotals:
    """All files below the checkpoint; ``bytes`` where sizes are known."""

    count: int
    bytes: int | None = None


class CheckpointReport(NamedTuple):
    """One inspected checkpoint. ``leftovers`` are files that Spark ignores; they are no damage."""

    location: str
    query_id: str | None
    spark_version: SparkVersion
    offsets_version: int | None
    commits_version: int | None
    marks: Marks
    next_batch: NextBatch | None
    batches: tuple[BatchLine, ...]
    sources: tuple[SourceLine, ...]
    operators: tuple[OperatorLine, ...]
    settings: Mapping[str, str]
    files: FileTotals
    damage: tuple[Damage, ...]
    leftovers: tuple[str, ...] = ()
