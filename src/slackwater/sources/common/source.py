"""What a kind of source is and does, and what holds for a source that shows nothing but its offsets.

A kind is stateless and pure. Offsets are Spark's strings, verbatim; ``None`` is no offset yet (``-`` in the
offset log) and for the beginning. The methods accept any string: from an offset of another kind nothing is derived.
What asks brokers and stores is a ``LiveSource``: ``Source.live`` imports it when it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from slackwater.core.checkpoint import SourceFile
from slackwater.core.commands import command
from slackwater.core.errors import EnvironmentMissing, UsageError
from slackwater.core.targets import Earliest, SourceTarget
from slackwater.formats.text_log import shown
from slackwater.sources.common.contract import (
    Ahead,
    Asked,
    Claims,
    EarlyEnd,
    EmptyBase,
    End,
    LeftOut,
    Position,
    Range,
    Reach,
    Reached,
    Replaced,
    RestartEffect,
    Served,
    SourceEntries,
    SourceRange,
    SourceSeen,
    SparkSource,
    Uncounted,
)
from slackwater.sources.common.shapes import decoded
from slackwater.sources.common.targets import unsupported

if TYPE_CHECKING:
    # The facts of doctor, which other commands do without.
    from slackwater.core.facts import Unserved
    from slackwater.core.program import SourceShape

NO_OFFSET = "no offset yet"


class Source:
    """One kind of source, as ``slackwater.sources.SOURCES`` finds it: a kind overrides what is known of it.

    As it is here, it copies the source's own log and derives nothing from offsets, which are only strings.
    """

    kind: str
    """The stable name of the kind: that of its module."""
    formats: frozenset[str] = frozenset()
    """Spark's names of the formats whose checkpoints may show this kind, in lower case."""
    connectors: frozenset[str] = frozenset()
    """The formats that need a connector of the same name: ``.format("kafka")`` in a pipeline file shows it."""
    harmless_options: frozenset[str] = frozenset()
    """Options in lower case that change no rows: rate limits, how the source is read."""
    identity_options: frozenset[str] = frozenset()
    """Options in lower case that decide what counts as read already, and so change rows of every query."""
    start_options: frozenset[str] = frozenset()
    """Options in lower case that only a new query uses: the position from which it reads."""
    strict_options: Mapping[str, str] = MappingProxyType({})
    """Options in lower case with the values, which are Spark's defaults, with which the source fails where rows that it
    should read no longer exist. With other values it leaves them out."""
    reads_files = False
    """Whether entries of the source's own log list files, in one way for all formats of the kind."""
    nothing_read: str | None = None
    """The offset of a source that has read nothing, where that is the same for all sources of the kind."""
    may_be_asked = True
    """Whether a second instance can be created to ask for its newest offset: it takes no rows from the query's."""
    serves_again = True
    """Whether the source can serve rows again after a failure: it is fault-tolerant, as the programming guide says."""
    has_empty_base = False
    """Whether ``empty_base`` knows an empty range, so that a rebuild can start at a later batch than 0."""
    shows_what_is_served = False
    """Whether ``LiveSource.unserved`` compares a position with what the source has now."""
    shows_what_is_free = False
    """Whether ``claimed`` and ``free`` know what batches have read, so that the rest can be backfilled."""
    end_field: str | None = None
    """The field in which the source keeps where a run ends that was started with the trigger available-now."""
    package = "org.apache.spark.sql."
    """How the names of the classes that have this field start."""
    early_end: EarlyEnd | None = None
    """The versions of the connector with which a run may end before it has read everything."""
    restart_effect = RestartEffect(
        "stuck", "how a start position is set depends on the kind of source: the offset is shown as Spark wrote it"
    )
    """What a manual restart meets because of this kind."""
    transient_errors: re.Pattern[str] | None = None
    """What the source's client reports where a restart of the unchanged query may succeed."""
    failures: tuple[tuple[str, re.Pattern[str]], ...] = ()
    """Codes of failures (``data-loss``, ``source-changed``), each with what a source of the kind reports then."""
    example = "an offset as Spark writes it"
    """An offset of the kind, and what it means, for people."""

    @property
    def label(self) -> str:
        """The name of the kind in reports of an inspection."""
        return self.kind

    @property
    def words(self) -> str:
        """The kind in a sentence: "was files, is kafka"."""
        return self.label

    def owns(self, offset: object, log: SourceEntries) -> bool:
        """Whether a source with this offset and log is of this kind. At most one kind owns any pair; never raises.

        ``offset`` is the decoded JSON, ``None`` where there is no offset yet, the string itself where it is not JSON.
        ``log`` may be lazy: only the entries that are needed are read.
        """
        return False

    def check_offset(self, source: str, offset: str | None, where: str, log: SourceEntries | None = None) -> None:
        """Raises UsageError (``target``) unless an offset from outside is one of this kind.

        Nothing can be derived from another value: it would count as the beginning. ``log`` is the source's own.
        """
        if self.owns(decoded(offset), log or {}):
            return
        raise UsageError(
            "target",
            f"This is not an offset of source {source}, which is of kind {self.kind}",
            where=shown(where),
            expected=self.example,
            found=shown(str(offset)),
            hint=f"{command('offsets', 'STREAM')} shows the offsets of a stream as Spark writes them",
        )

    def is_named(self, description: str) -> bool:
        """Whether Spark names a source of this kind so, in the plan of a query or in progress events."""
        return False

    def live(self) -> LiveSource:
        """The part of the kind that asks brokers and stores."""
        return LiveSource(self)

    def empty_base(self, start: str | None) -> EmptyBase | None:
        """The empty batch before a range from ``start``; ``None`` where no empty range is known for this kind."""
        return None

    def first_log(self, base: EmptyBase) -> Mapping[str, bytes] | None:
        """The files of ``sources/<source>/`` with which a checkpoint without any batch starts at this position.

        ``None`` where Spark has no way to start there.
        """
        return None

    def log_until(self, end: str | None, log: SourceEntries, interval: int) -> Mapping[str, bytes]:
        """The files of ``sources/<source>/`` of a checkpoint whose newest offset is ``end`` (``None``: no offset yet).

        ``interval`` is the compaction interval in effect. Every entry up to ``end`` must be in ``log``: check
        ``unrecorded`` first, with a range from the beginning.
        """
        return {str(entry): encoded(line) for entry, line in log.items()}

    def rows(self, span: SourceRange) -> int | None:
        """The number of rows in a range at most, where the offsets alone determine it."""
        return None

    def counted(self, span: SourceRange) -> Mapping[str, int | None] | None:
        """How many offsets or files are in a range, by part (a partition); negative where it ends before its start.

        A part that the start does not name starts at 0; ``None`` for one that the end lacks. ``None`` as a whole where
        it cannot be known. Raises FormatError for a malformed entry.
        """
        return None

    def batch_read(
        self, span: SourceRange, options: Mapping[str, str], was: Mapping[str, str]
    ) -> Mapping[str, str] | None:
        """The options with which a batch read gives just the rows of a range that are still there.

        ``options`` are those of the present query, ``was`` those with which the range was read (empty: unknown).
        ``None``: no such read is known, or what a query counts as read of the source depends on its code.
        """
        return None

    def unrecorded(self, span: SourceRange) -> tuple[str, ...]:
        """The entries of ``sources/<source>/`` that the range needs and ``log`` lacks: "5", or "5..9" for several."""
        return ()

    def files(self, span: SourceRange) -> tuple[SourceFile, ...]:
        """The files that the range reads, as far as they are in ``log``. Raises FormatError for a malformed entry."""
        return ()

    def unavailable(self, span: SourceRange, reach: Reach) -> tuple[str, ...]:
        """What the source can no longer serve of the range, for people. Raises FormatError for a malformed entry."""
        return ()

    def replaced(self, span: SourceRange, reach: Reach) -> tuple[Replaced, ...]:
        """The files of the range that were replaced or changed after they had been read."""
        return ()

    def claimed(self, span: SourceRange, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...] | None:
        """What of a range is not free for a backfill, for people.

        That is what one of ``read`` reads too, and what is not within ``live``, the range from the beginning to where
        the stream is. ``None`` where it cannot be known.
        """
        return () if span.start == span.end else None

    def free(self, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...]:
        """What a backfill may read, for people: that within ``live`` which none of ``read`` reads."""
        return ()

    def initial(self, log: SourceEntries) -> str | None:
        """The position before batch 0, where it is recorded or is the same for all sources of the kind.

        Raises FormatError for a malformed entry.
        """
        return None

    def describe(self, offset: str | None) -> str:
        """The position for people, on one line."""
        return NO_OFFSET if offset is None else offset

    def cut_entry(self, end: str | None) -> int | None:
        """The last entry of ``sources/<source>/`` that belongs to a checkpoint at ``end`` (-1: none of them).

        ``None``: all of them do.
        """
        return None

    def entry_parser(self, data: bytes) -> Callable[[bytes], object] | None:
        """What parses an entry of ``sources/<source>/`` or raises FormatError; ``None`` for one of another kind."""
        return None

    def listed(self, data: bytes) -> tuple[SourceFile, ...]:
        """The files that an entry lists, those of older entries too if it is compacted. Raises FormatError."""
        return ()

    def count_listed(self, data: bytes) -> int:
        """How many these are, without parsing all of them. Raises FormatError for an entry that was cut."""
        return 0

    def range_between(self, start: EmptyBase, end: EmptyBase, claims: Claims, *, to_next: bool) -> Range:
        """The range between two positions, of what no batch has read.

        ``to_next``: nobody has asked for this end, and the range may end before it. Raises Refused
        (``target-out-of-range``) where an end that was asked for is before the start.
        """
        return Range(start.end, end.end, start.log)

    def fixed_end(self, value: Any, source: str, log: SourceEntries) -> End | None:
        """The end that the ``end_field`` of Spark's source has, empty where it is unknown; ``None``: not fixed yet."""
        return {}

    def reached(self, end: End, span: SourceRange) -> Reached:
        """Whether a range from the beginning ends at this end of a run; ``before``: the run had data left."""
        return "unknown"

    def location(self, offset: str | None) -> str:
        """What the source reads, as ``SourceShape.location`` names it, where offsets show it; else empty."""
        return ""

    def continues(self, was: str, now: str) -> bool:
        """Whether a source with another location keeps its positions: only what it reads from there on differs."""
        return False

    def is_client_option(self, key: str, before: str | None, after: str | None) -> bool:
        """Whether an option that changed is one of the source's client, which changes no rows."""
        return False

    def restart_fields(
        self, offset: str | None, files_read: int | None, files_to_come: Sequence[SourceFile]
    ) -> Mapping[str, object]:
        """A position as the JSON of ``slackwater offsets`` has it."""
        return {"offset": offset}


class LiveSource:
    """What a kind asks of brokers and stores, through Spark where the query itself would.

    As it is here, it knows only the position before batch 0, where that is recorded.
    """

    def __init__(self, kind: Source) -> None:
        self.kind = kind

    def position(self, source: SourceSeen, target: SourceTarget, given: str | None) -> Position:
        """The position at a target; ``given`` is the offset of a ``FromFile``. Raises Refused or UsageError."""
        kind = self.kind
        initial = kind.initial(source.log) if isinstance(target, Earliest) else None
        if initial is None:
            named = f"kind {kind.kind}" if kind.kind != "unknown" else "an unknown kind"
            raise unsupported(source.where, f"the source is of {named}, of which only a recorded position is known")
        base = EmptyBase(initial, kind.log_until(initial, source.log, source.interval))
        return source.at(base, f"{kind.describe(source.current)} -> {kind.describe(initial)}")

    def served(self, source: SparkSource) -> Served | None:
        """The positions that are served now, as Spark writes them; ``None`` for a kind that has none."""
        return None

    def left_out(
        self, source: SparkSource, read: Sequence[SourceFile], again: Sequence[SourceFile], reach: Reach
    ) -> LeftOut | None:
        """What the source would leave out of ``again`` where ``read`` is all that counts as read; ``None``: nothing.

        What no longer exists is not in it.
        """
        return None

    def unreachable(self, source: SparkSource, reason: str) -> EnvironmentMissing:
        """The error for a source that does not answer."""
        return EnvironmentMissing(
            "store-unreachable",
            f"A source cannot be asked for its positions: {reason}",
            where=source.where,
            hint="check what the source reads, and the options of the source",
        )

    def unserved(self, shape: SourceShape, asked: Asked, source: SparkSource | None = None) -> Sequence[Unserved]:
        """What the source does not have of the next batch. ``shape`` is the source in the recorded query.

        ``source`` is that of a query about to start, which has what is not recorded: credentials. Without it nothing
        runs in a JVM. Raises EnvironmentMissing or OSError.
        """
        return ()

    def ids(self, shape: SourceShape, offset: str | None, source: SparkSource | None = None) -> Mapping[str, str]:
        """The ids of what the source reads, which another topic of the same name does not have. As ``unserved``.

        ``offset`` is the newest one, if there is any. Empty for kinds whose offsets have the id, or that have none.
        """
        return {}

    def unread(self, description: str, span: SourceRange, files_max: int) -> Sequence[int]:
        """The bytes of each file that is there and not in ``span``, which is what was read from the beginning.

        ``description`` is that of progress events. Raises Uncounted, OSError and FormatError.
        """
        return ()

    def ahead(self, end: str | None, read: Sequence[SourceFile], address: str | None, files_max: int) -> Ahead:
        """What the source has beyond ``end``; ``read`` are all files that its own log lists.

        ``address`` is where it is, where the checkpoint does not have that. Nothing runs in a JVM. Raises Uncounted,
        EnvironmentMissing, OSError and FormatError.
        """
        raise Uncounted(f"of kind {self.kind.kind} does not show what it has beyond a position")


def encoded(entry: str) -> bytes:
    """The bytes of a log entry that was decoded with surrogate escapes."""
    return entry.encode("utf-8", "surrogateescape")
