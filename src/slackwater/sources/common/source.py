"""The contract of a kind of source, with defaults for opaque offsets.

Kinds are stateless and pure. Offsets are Spark's verbatim strings; ``None`` is no offset yet (``-`` in the offset log)
and the beginning. Methods accept any string and derive nothing from offsets of a different kind. ``Source.live``
imports the ``LiveSource``, which asks brokers and stores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from slackwater.core.checkpoint import ChangedFile, SourceFile
from slackwater.core.commands import command
from slackwater.core.errors import EnvironmentMissing, UsageError
from slackwater.core.targets import Target
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
    RestartEffect,
    Served,
    SourceEntries,
    SourceRange,
    SourceSeen,
    SparkSource,
    Uncounted,
    decoded,
    unsupported,
)

if TYPE_CHECKING:
    # The facts of doctor, which other commands do without.
    from slackwater.core.facts import Unserved
    from slackwater.core.program import SourceShape

NO_OFFSET = "no offset yet"


class Source:
    """A kind of source; kinds override these defaults.

    The default copies the source's own log and treats offsets as opaque strings.
    """

    kind: str
    """The stable name of the kind: its module's name."""
    live_module: str | None = None
    """The module whose ``LIVE`` asks brokers and stores."""
    formats: frozenset[str] = frozenset()
    """Spark's names of the formats whose checkpoints may show this kind, in lower case."""
    connectors: frozenset[str] = frozenset()
    """The formats that need a connector of the same name: ``.format("kafka")`` in a pipeline file shows it."""
    harmless_options: frozenset[str] = frozenset()
    """Options in lower case that change no rows: rate limits, and the way in which the source is read."""
    identity_options: frozenset[str] = frozenset()
    """Options in lower case that decide which data counts as already read, and so change rows of every query."""
    start_options: frozenset[str] = frozenset()
    """Options in lower case that only a new query uses: the position from which it reads."""
    strict_options: Mapping[str, str] = MappingProxyType({})
    """Options in lower case, with Spark's default values, that make the source fail if rows to be read no longer exist.

    With other values the source omits these rows.
    """
    reads_files = False
    """Whether entries of the source's own log list files, in the same way for all formats of the kind."""
    nothing_read: str | None = None
    """The offset of a source that has read nothing, if it is the same for all sources of the kind."""
    may_be_asked = True
    """Whether a second instance can be created to ask for its newest offset: it takes no rows from the query's."""
    serves_again = True
    """Whether the source can serve rows again after a failure: it is fault-tolerant, as the programming guide says."""
    has_empty_base = False
    """Whether ``empty_base`` knows an empty range, so that a rebuild can start at a later batch than 0."""
    shows_what_is_served = False
    """Whether ``LiveSource.unserved`` compares a position with the source's present data."""
    shows_what_is_free = False
    """Whether ``claimed`` and ``free`` know the ranges read by batches, so that the rest can be backfilled."""
    end_field: str | None = None
    """The field in which the source keeps the end of a run with the trigger available-now."""
    package = "org.apache.spark.sql."
    """The prefix of the names of classes with this field."""
    early_end: EarlyEnd | None = None
    """The versions of the connector with which a run may end before it has read everything."""
    restart_effect: RestartEffect = (
        "stuck",
        "how a start position is set depends on the kind of source: the offset is shown as Spark wrote it",
    )
    """The effect of a manual restart on this kind."""
    transient_errors: re.Pattern[str] | None = None
    """Errors of the source's client after which a restart of the unchanged query may succeed."""
    failures: tuple[tuple[str, re.Pattern[str]], ...] = ()
    """Codes of failures (``data-loss``, ``source-changed``), each with its errors in this kind."""
    example = "an offset as Spark writes it"
    """An offset of the kind, and its meaning, for people."""

    @property
    def label(self) -> str:
        return self.kind

    @property
    def words(self) -> str:
        return self.label

    def owns(self, offset: object, log: SourceEntries) -> bool:
        """Return whether the kind owns a pair; at most one kind does. Never raises.

        ``offset`` is decoded JSON, ``None`` if there is none yet, the string if it is not JSON. ``log`` may be lazy.
        """
        return False

    def check_offset(self, source: str, offset: str | None, where: str, log: SourceEntries | None = None) -> None:
        """Raises UsageError (``target``) unless an offset from outside is of this kind.

        Any other value would count as the beginning.
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
        """Return whether Spark's description in a plan or progress event is of this kind."""
        return False

    def live(self) -> LiveSource:
        live: LiveSource = import_module(self.live_module).LIVE if self.live_module else LiveSource(self)
        return live

    def empty_base(self, start: str | None) -> EmptyBase | None:
        """The empty batch before a range from ``start``; ``None`` if the kind has no empty range."""
        return None

    def first_log(self, base: EmptyBase) -> Mapping[str, bytes] | None:
        """The ``sources/<source>/`` files of a checkpoint without batches at this position.

        ``None`` if Spark cannot start there.
        """
        return None

    def log_until(self, end: str | None, log: SourceEntries, interval: int) -> Mapping[str, bytes]:
        """The log for a checkpoint whose newest offset is ``end`` (``None``: no offset yet).

        ``interval`` is the compaction interval. ``log`` must have every entry up to ``end``: check ``unrecorded``
        first, with a range from the beginning.
        """
        return {str(entry): encoded(line) for entry, line in log.items()}

    def rows(self, span: SourceRange) -> int | None:
        """The most rows that a range can have, if its offsets determine it."""
        return None

    def counted(self, span: SourceRange) -> Mapping[str, int | None] | None:
        """Offsets or files by part (partition); negative if the range ends before its start.

        A part without a start starts at 0; ``None`` if unknown. Raises FormatError.
        """
        return None

    def batch_read(
        self, span: SourceRange, options: Mapping[str, str], was: Mapping[str, str]
    ) -> Mapping[str, str] | None:
        """The options of a batch read that gives exactly the range's rows that still exist.

        ``was`` are the original read's options (empty: unknown). ``None``: no such read is known, or the rows depend on
        the query's code.
        """
        return None

    def unrecorded(self, span: SourceRange) -> tuple[str, ...]:
        """The entries of ``sources/<source>/`` that the range needs and ``log`` lacks: "5" or "5..9"."""
        return ()

    def files(self, span: SourceRange) -> tuple[SourceFile, ...]:
        """The files of the range that are in ``log``. Raises FormatError."""
        return ()

    def unavailable(self, span: SourceRange, reach: Reach) -> tuple[str, ...]:
        """Lost parts of the range, for people. Raises FormatError."""
        return ()

    def replaced(self, span: SourceRange, reach: Reach) -> tuple[ChangedFile, ...]:
        return ()

    def claimed(self, span: SourceRange, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...] | None:
        """The part of a range that is not free for a backfill, for people.

        A range in ``read`` covers it, or it is outside ``live``. ``None`` if unknown.
        """
        return () if span.start == span.end else None

    def free(self, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...]:
        """The part of ``live`` that a backfill may read, for people: no range in ``read`` covers it."""
        return ()

    def initial(self, log: SourceEntries) -> str | None:
        """The position before batch 0, if it is recorded or fixed for the kind. Raises FormatError."""
        return None

    def describe(self, offset: str | None) -> str:
        return NO_OFFSET if offset is None else offset

    def cut_entry(self, end: str | None) -> int | None:
        """The last entry of ``sources/<source>/`` in a checkpoint at ``end`` (-1: none). ``None``: all entries."""
        return None

    def entry_parser(self, data: bytes) -> Callable[[bytes], object] | None:
        """The parser, which raises FormatError; ``None`` for an entry of a different kind."""
        return None

    def listed(self, data: bytes) -> tuple[SourceFile, ...]:
        """The files in an entry, including older files if it is compacted. Raises FormatError."""
        return ()

    def count_listed(self, data: bytes) -> int:
        """The number of ``listed``, without full parsing. Raises FormatError for a truncated entry."""
        return 0

    def range_between(self, start: EmptyBase, end: EmptyBase, claims: Claims, *, to_next: bool) -> Range:
        """The range between two positions. ``to_next``: the range may stop before the end, which was not requested.

        Raises Refused (``target-out-of-range``) for a requested end before the start.
        """
        return Range(start.end, end.end, start.log)

    def fixed_end(self, value: Any, source: str, log: SourceEntries) -> End | None:
        """The end in the ``end_field`` of Spark's source; empty if unknown, ``None`` if not fixed yet."""
        return {}

    def reached(self, end: End, span: SourceRange) -> Reached:
        """Return whether a range from the beginning reaches this end; ``before``: data was left."""
        return "end" if "offset" in end and decoded(end["offset"]) == decoded(span.end) else "unknown"

    def location(self, offset: str | None) -> str:
        """The source's ``SourceShape.location`` if offsets show it; otherwise empty."""
        return ""

    def continues(self, was: str, now: str) -> bool:
        return False

    def is_client_option(self, key: str, before: str | None, after: str | None) -> bool:
        return False

    def restart_fields(
        self, offset: str | None, files_read: int | None, files_to_come: Sequence[SourceFile]
    ) -> Mapping[str, object]:
        return {"offset": offset}


class LiveSource:
    """A kind's questions to brokers and stores, asked through Spark if the query would.

    The default knows only a recorded position before batch 0.
    """

    def __init__(self, kind: Source) -> None:
        self.kind = kind

    def position(self, source: SourceSeen, target: Target, given: str | None) -> Position:
        """The position of a target; ``given`` is the offset in its file. Raises Refused or UsageError."""
        kind = self.kind
        initial = kind.initial(source.log) if target.kind == "earliest" else None
        if initial is None:
            named = f"kind {kind.kind}" if kind.kind != "unknown" else "an unknown kind"
            raise unsupported(source.where, f"the source is of {named}, of which only a recorded position is known")
        base = EmptyBase(initial, kind.log_until(initial, source.log, source.interval))
        return source.at(base, f"{kind.describe(source.current)} -> {kind.describe(initial)}")

    def served(self, source: SparkSource) -> Served | None:
        """The positions served now; ``None`` if the kind has none."""
        return None

    def left_out(
        self, source: SparkSource, read: Sequence[SourceFile], again: Sequence[SourceFile], reach: Reach
    ) -> LeftOut | None:
        """The existing files of ``again`` that the source would omit if only ``read`` counted as read."""
        return None

    def unreachable(self, source: SparkSource, reason: str) -> EnvironmentMissing:
        return EnvironmentMissing(
            "store-unreachable",
            f"A source cannot report its positions: {reason}",
            where=source.where,
            hint="check what the source reads, and the options of the source",
        )

    def unserved(self, shape: SourceShape, asked: Asked, source: SparkSource | None = None) -> Sequence[Unserved]:
        """The data of the next batch that the source lacks. ``shape`` is the source in the recorded query.

        ``source`` is from a query about to start, which has unrecorded data: credentials. Without it nothing runs in a
        JVM. Raises EnvironmentMissing or OSError.
        """
        return ()

    def ids(self, shape: SourceShape, offset: str | None, source: SparkSource | None = None) -> Mapping[str, str]:
        """Ids that distinguish the read topics from new topics of the same name. Raises as ``unserved``.

        ``offset`` is the newest, if any. Empty if offsets contain the id or the kind has none.
        """
        return {}

    def unread(self, description: str, span: SourceRange, files_max: int) -> Sequence[int]:
        """Bytes of each unread file.

        ``description`` is from progress events. Raises Uncounted, OSError and FormatError.
        """
        return ()

    def ahead(self, end: str | None, read: Sequence[SourceFile], address: str | None, files_max: int) -> Ahead:
        """The data beyond a position. ``read`` are all files in the source's own log.

        ``address`` is needed if the checkpoint lacks it. Runs without a JVM. Raises Uncounted, EnvironmentMissing,
        OSError and FormatError.
        """
        raise Uncounted(f"of kind {self.kind.kind} does not show what it has beyond a position")


def encoded(entry: str) -> bytes:
    """Encode a log entry that was decoded with surrogate escapes."""
    return entry.encode("utf-8", "surrogateescape")
