"""The sinks' contract: how Spark writes (``Sink``), and the content of an output (``Output``).

Other packages use only these, independent of kinds and paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from slackwater.core.checkpoint import Damage
from slackwater.core.marks import NONE_YET
from slackwater.core.sink import Cut, Owner, Swap, Traits, WriteContext
from slackwater.storage.protocols import ReadStore, WriteStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Startable(Protocol):
    """A ``DataStreamWriter``, or a call of its ``toTable``."""

    def start(self) -> StreamingQuery: ...


class Sink(Protocol):
    """A stream's sink."""

    @property
    def kind(self) -> str:
        """The name under which its outputs are registered: ``files``, ..."""

    @property
    def traits(self) -> Traits: ...

    @property
    def output_modes(self) -> tuple[str, ...]: ...

    def identity(self) -> Mapping[str, str]: ...

    @property
    def connectors(self) -> tuple[str, ...]:
        """Needed connectors, as named by ``slackwater connectors``."""

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Check before the start: reachable, writable, schema accepted.

        Raises PipelineError or Refused for a permanent problem, StreamFailed if a restart may help.
        """

    def attach(self, writer: DataStreamWriter, context: WriteContext, /) -> Startable:
        """Configure the writer. Returns it, or an object whose ``start()`` calls Spark's own method."""


@runtime_checkable
class Creates(Protocol):
    """A sink whose output must exist before queries that read it are built.

    Partitions are the table's: a batch function takes none.
    """

    def create_output(self, frame: DataFrame, partition_by: tuple[str, ...], /) -> None:
        """Create an empty output unless it exists. Raises PipelineError."""


@runtime_checkable
class WritesBatches(Sink, Protocol):
    """A sink that writes each batch by a function, as ``sinks.all_of`` requires."""

    def batch_writer(self, context: WriteContext, /) -> Callable[[DataFrame, int], None]:
        """The batch function, which skips a batch that is already in the output.

        ``attach`` sets the same function. The DataFrame may be persisted.
        """


@runtime_checkable
class Staged(Sink, Protocol):
    """A sink whose output can be staged, if ``traits.swaps``; see ``Swappable``."""

    def staged(self, operation: str, /) -> Sink:
        """The sink for an operation's staged output.

        Batches keep the stream id. After the swap the original sink continues with the staged checkpoint. Raises
        Refused if the store cannot swap.
        """


@dataclass(frozen=True, slots=True)
class SinkLog:
    """A sink's own log: numbered entries in a folder.

    ``parse`` parses an entry and raises FormatError.
    """

    store: ReadStore
    folder: str
    parse: Callable[[bytes], object]


class Output(Protocol):
    """A stream's output on its store. Reads need no JVM."""

    @property
    def location(self) -> str | None:
        """The place with symlinks resolved; equal locations are the same output. ``None``: no place."""

    @property
    def traits(self) -> Traits: ...

    def last_written(self) -> int | None:
        """The newest batch, -1 for none, ``None`` if unknowable.

        Raises SinkUnreadable if damaged.
        """

    def owner(self) -> Owner | None:
        """The owner, ``None`` without a claim. Raises SinkUnreadable for a damaged mark."""

    def claim(self, owner: Owner) -> None:
        """Claim the output; the same ``stream_id`` again updates names.

        Raises Refused (``sink-owned``).
        """

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        """The output's damage. ``thorough`` checks every batch, not only the newest."""

    def log(self) -> SinkLog | None: ...

    def relative_path(self, uri: str) -> str | None:
        """The path below the output, ``None`` for a file elsewhere."""

    def cut_after(self, batch: int, recorded: Mapping[int, str]) -> Cut:
        """The cut of all batches after ``batch``. ``recorded`` are ledger copies of ``log()`` entries.

        Raises Refused if unknown, or for a foreign file.
        """

    def cut(self, cut: Cut, recorded: Mapping[int, str], backup: WriteStore) -> None:
        """Remove ``cut``; ``backup`` first gets a verified copy of each file.

        Repeatable after any interruption. Raises Refused before any change.
        """

    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        """Raises Refused if ``restore`` would: a damaged backup, a changed or read-only output."""

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        """Undo ``cut`` byte by byte. Repeatable after any interruption.

        Raises Refused (``backup-damaged``) before any change.
        """

    def reader_path(self) -> str:
        """The path for ``spark.readStream...load(...)``, prepared so that only committed files are read.

        Raises PipelineError if streams cannot read it.
        """


@runtime_checkable
class Released(Protocol):
    """An output whose claim can be removed."""

    def release(self, stream_id: str) -> None:
        """Remove only this owner's record. Repeatable."""


@runtime_checkable
class ListsOrphans(Protocol):
    """An output that recognises files of no batch."""

    def orphans(self) -> tuple[str, ...]:
        """Data files left by an interrupted batch, which are not damage.

        Includes the batch being written.
        """


class ListedFiles(NamedTuple):
    """An output's number of files, and outside files by folder.

    A scheme or host unlike the newest file's counts as outside.
    """

    files: int
    elsewhere: Mapping[str, int]


@runtime_checkable
class ListsFiles(Protocol):
    """An output whose log has absolute addresses, which may be elsewhere."""

    def listed(self) -> ListedFiles:
        """The listed files, without malformed entries, which are damage. Raises OSError."""


@runtime_checkable
class ReadByListing(Protocol):
    """An output that readers may list, ignoring its log."""

    def seen_while_cut(self, cut: Cut | None) -> str | None:
        """A sentence about readers during the cut; ``None`` if the cut is atomic.

        ``cut`` ``None``: files are unknown.
        """

    def seen_while_swapped(self) -> str | None: ...


@runtime_checkable
class ListsTransactions(Protocol):
    """An output whose log has each application's newest transaction."""

    def transactions(self, application: str) -> Mapping[str, int]:
        """The numbers in log entries by application id; ``application``'s may be in a log checkpoint.

        Raises SinkUnreadable.
        """


@runtime_checkable
class MarkedByQuery(Protocol):
    """An output that Spark's own writer marks by query id, which is not in an identity."""

    def written_by(self, query_id: str) -> int | None:
        """The query's newest batch, ``None`` if not shown. Raises SinkUnreadable."""

    def of_query(self, query_id: str, /) -> Output:
        """The query's output: its batches are the stream's, and can be cut or swapped if possible."""


def of_query(output: Output, query_id: str | None) -> Output:
    """The output itself unless Spark's own writer marks it."""
    return output.of_query(query_id) if query_id is not None and isinstance(output, MarkedByQuery) else output


def of_any_query(output: Output) -> Output:
    """The output for facts that are equal for every query: possible plans and staging places."""
    return of_query(output, "")


@runtime_checkable
class FilledByQueries(Protocol):
    """A table that can be cut or swapped with marks of Spark's own streaming writer."""

    @property
    def exists(self) -> bool: ...

    def filled_by(self, query_id: str, /) -> Output:
        """The query's table; cuts and swaps get the writer's marks."""


@runtime_checkable
class ReadByVersion(Protocol):
    """An output that streams read by version, not by file name."""

    def was_read(self, offsets: Iterable[str], cut: Cut) -> bool:
        """Return whether a stream at these source offsets has read rows of ``cut``."""


@runtime_checkable
class MarkedBesideRows(Protocol):
    """An output with its marker next to its rows: either can be lost or restored without the other."""

    def may_have_rows(self, marked: int) -> bool:
        """Return whether rows of later batches may exist. Raises SinkUnreadable."""

    @property
    def shows_rows(self) -> bool: ...

    def how_to_empty(self, marked: int) -> str: ...


@runtime_checkable
class MarkedElsewhere(Protocol):
    """An output with a user-chosen marker, which outputs may share."""

    @property
    def marker_locations(self) -> frozenset[str]:
        """Outputs that share a marker count each other's batches."""


@runtime_checkable
class ReplacesUnmarked(Protocol):
    """An output that can be swapped after its marker was lost."""

    def without_marker(self) -> Swappable:
        """The output without its marker: its swap keeps no possible row of the stream.

        ``others`` are all these rows, not ``sure``.
        """


@runtime_checkable
class Swappable(Protocol):
    """An output that can be staged and swapped in atomically, if ``traits.swaps``.

    Order: ``stage``, ``claim`` of the staged output, the query with the staged sink, ``swap_of``, ``swap``. Each is
    repeatable after any interruption, and removes only data marked as the operation's. Nobody may write to either
    output during ``swap`` and ``swap_back``.
    """

    def staged(self, operation: str) -> Output: ...

    def stage(self, operation: str, after: int, recorded: Mapping[int, str]) -> None:
        """Prepare the staged output with batches up to ``after`` (-1: none) and others' rows.

        The swap's ``others`` are rows that it lacks. Raises Refused if impossible, or if the name is taken.
        """

    def swap_of(self, operation: str, stream_id: str, after: int = NONE_YET) -> Swap:
        """The swap of the staged output; ``after`` is from ``stage``.

        Raises Refused if the output cannot be swapped.
        """

    def whole(self, recorded: Mapping[int, str]) -> Cut:
        """Everything that a swap replaces, only to find its readers.

        Raises Refused if unknown.
        """

    def check_swap(self, swap: Swap, backup: WriteStore) -> None: ...

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        """Replace the real output, which is kept until ``discard_replaced``.

        Raises Refused before any change: the staged output is missing, damaged or foreign, or the real output is
        unexpected. No writer can come in between.
        """

    def check_swap_back(self, swap: Swap, backup: WriteStore) -> None:
        """Raises Refused if ``swap_back`` would, or if the replaced output is damaged."""

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        """Restore the real output byte by byte; the staged output returns, with batches written since.

        Raises Refused before any change, also if others' newer rows would be lost.
        """

    def discard_staged(self, operation: str) -> None:
        """Remove the staged output of an operation that was abandoned or swapped back."""

    def discard_replaced(self, operation: str) -> None:
        """Remove the replaced output: the swap can no longer be undone."""


@runtime_checkable
class StagedByPath(Swappable, Protocol):
    """A swappable output that Spark's own writers can write at a different path.

    Not for batch functions, which choose their targets.
    """

    def staged_path(self, operation: str, /) -> str: ...
