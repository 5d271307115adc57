"""The contract of every sink: how Spark writes it (``Sink``), and what its output holds now (``Output``).

Code outside this package uses only these two protocols. It depends neither on a kind nor on a path.
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
    """A query that is ready to be started: a ``DataStreamWriter``, or what calls its ``toTable``."""

    def start(self) -> StreamingQuery:
        """Start the query."""


class Sink(Protocol):
    """What a stream is given as its sink."""

    @property
    def kind(self) -> str:
        """The name under which its outputs are registered: ``files``, ..."""

    @property
    def traits(self) -> Traits:
        """The guarantees of this sink, the same as those of its output."""

    @property
    def output_modes(self) -> tuple[str, ...]:
        """The output modes that Spark allows for it."""

    def identity(self) -> Mapping[str, str]:
        """Identifies the sink; recorded in ``stream.json`` and in the ledger. ``open_output`` takes it."""

    @property
    def connectors(self) -> tuple[str, ...]:
        """The connectors whose jars and Spark settings it needs, by the names of ``slackwater connectors``."""

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Check before the query starts that these rows can be written: reachable, writable, schema accepted.

        Raises PipelineError or Refused for what a restart cannot fix, StreamFailed for what it may.
        """

    def attach(self, writer: DataStreamWriter, context: WriteContext, /) -> Startable:
        """Set this sink on the writer. Where Spark has a call of its own to start it, what makes that call."""


@runtime_checkable
class Creates(Protocol):
    """A sink whose output must exist before a query that reads it can be built: a table with its schema.

    Its partitions are those of the table; the writer is not given any, because a batch function takes none.
    """

    def create_output(self, frame: DataFrame, partition_by: tuple[str, ...], /) -> None:
        """Create the output for these rows, without any, unless it exists. Raises PipelineError where it cannot be."""


@runtime_checkable
class WritesBatches(Sink, Protocol):
    """A sink that writes each batch by a function. Only such a sink can be one of several: ``sinks.all_of``."""

    def batch_writer(self, context: WriteContext, /) -> Callable[[DataFrame, int], None]:
        """The function that writes one batch by its DataFrame and id, or skips one that the output has.

        ``attach`` sets the same function on the writer. It is called with a DataFrame that may be persisted already.
        """


@runtime_checkable
class Staged(Sink, Protocol):
    """A sink with an output of which another can be staged, where ``traits.swaps``: ``Swappable`` has the rest."""

    def staged(self, operation: str, /) -> Sink:
        """The sink for the staged output of an operation, next to the real output.

        Batches are written under the same stream id. Once the staged output was swapped in, the sink itself continues
        with the checkpoint of the staged one. Raises Refused where the output is on a store that cannot swap.
        """


@dataclass(frozen=True, slots=True)
class SinkLog:
    """The log that a sink keeps itself: numbered entries in one folder of a store.

    ``parse`` is the parser of one entry; it raises FormatError.
    """

    store: ReadStore
    folder: str
    parse: Callable[[bytes], object]


class Output(Protocol):
    """The output of a stream as it is on its store. Reads need no JVM."""

    @property
    def location(self) -> str | None:
        """Where the output is, symlinks resolved: two outputs with one location are the same. ``None``: no place."""

    @property
    def traits(self) -> Traits:
        """What this output can do."""

    def last_written(self) -> int | None:
        """The newest batch that the output shows, -1 for none yet, ``None`` if this cannot be known.

        Raises SinkUnreadable if the output should show it but is damaged.
        """

    def owner(self) -> Owner | None:
        """The stream that claimed the output, ``None`` if none did. Raises SinkUnreadable if the mark is damaged."""

    def claim(self, owner: Owner) -> None:
        """Record ``owner``. The same ``stream_id`` again updates its names.

        Raises Refused (``sink-owned``) if another stream owns the output.
        """

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        """Missing or malformed parts; ``thorough`` checks every batch and not only the newest."""

    def log(self) -> SinkLog | None:
        """The sink's own log, to be copied into the ledger; ``None`` if it keeps none."""

    def relative_path(self, uri: str) -> str | None:
        """The path relative to the output of a file that a reader names by ``uri``; ``None`` if it is elsewhere."""

    def cut_after(self, batch: int, recorded: Mapping[int, str]) -> Cut:
        """What the batches after ``batch`` wrote. ``recorded``: the ledger's copies of entries of ``log()``.

        Raises Refused if this is unknown or if a file is not the output's own.
        """

    def cut(self, cut: Cut, recorded: Mapping[int, str], backup: WriteStore) -> None:
        """Remove what ``cut`` names; ``backup`` has a verified copy of each file before the first is removed.

        Can be repeated after it was interrupted at any point. Raises Refused before anything is changed.
        """

    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        """Raises Refused if ``restore`` would: a damaged backup, an output that was changed or cannot be written to."""

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        """Undo ``cut``: every byte as before. Can be repeated after it was interrupted at any point.

        Raises Refused (``backup-damaged``) before anything is changed.
        """

    def reader_path(self) -> str:
        """The path for ``spark.readStream...load(...)``; prepares the output so that only committed files are read.

        Raises PipelineError if a stream cannot read this output.
        """


@runtime_checkable
class Released(Protocol):
    """An output that a stream can give up: what ``claim`` has recorded is removed, and nothing else."""

    def release(self, stream_id: str) -> None:
        """Remove the record of this owner; that of another stream stays. Can be repeated."""


@runtime_checkable
class ListsOrphans(Protocol):
    """An output that can tell the files of its batches from others. Few can; asked for by ``isinstance``."""

    def orphans(self) -> tuple[str, ...]:
        """Data files below the output that belong to no batch: an interrupted batch left them. No damage.

        While the stream runs, those of the batch that is being written are among them.
        """


class ListedFiles(NamedTuple):
    """The files in the log of an output: their number, and the folders outside of the output, each with its files.

    A file under another scheme or host than the newest one counts as outside, too.
    """

    files: int
    elsewhere: Mapping[str, int]


@runtime_checkable
class ListsFiles(Protocol):
    """An output whose log lists its files by absolute addresses, which can be those of another place."""

    def listed(self) -> ListedFiles:
        """The files that the log lists, without entries that cannot be parsed: they are damage. Raises OSError."""


@runtime_checkable
class ReadByListing(Protocol):
    """An output that readers can take from a listing of its files, although its own log says which of them count."""

    def seen_while_cut(self, cut: Cut | None) -> str | None:
        """What such readers see while a cut is made or undone, as a sentence; ``None`` where all is or nothing is cut.

        ``cut`` is ``None`` where its files are not known yet.
        """

    def seen_while_swapped(self) -> str | None:
        """What such readers see while a swap is made or undone; ``None`` where it is one step for them, too."""


@runtime_checkable
class ListsTransactions(Protocol):
    """An output whose log has the number of the newest transaction of each application that wrote to it."""

    def transactions(self, application: str) -> Mapping[str, int]:
        """The newest number by application id, as far as the log has entries. Raises SinkUnreadable.

        That of ``application`` also where only a checkpoint of the log has it.
        """


@runtime_checkable
class MarkedByQuery(Protocol):
    """An output that Spark's own writer marks by the id of the query, which an identity does not have."""

    def written_by(self, query_id: str) -> int | None:
        """The newest batch of this query, ``None`` where the output shows none. Raises SinkUnreadable."""

    def of_query(self, query_id: str, /) -> Output:
        """The output of this query: its batches are those of the stream, which can be cut or swapped where possible."""


def of_query(output: Output, query_id: str | None) -> Output:
    """The output as that of this query, where Spark's own writer marks it by the query; else the output itself."""
    return output.of_query(query_id) if query_id is not None and isinstance(output, MarkedByQuery) else output


def of_any_query(output: Output) -> Output:
    """The output as that of some query: what plans can do to it, and where one is staged, is the same for each."""
    return of_query(output, "")


@runtime_checkable
class FilledByQueries(Protocol):
    """A table that can be cut, and perhaps swapped, with the marks of Spark's own streaming writer, too."""

    @property
    def exists(self) -> bool:
        """Whether there is one."""

    def filled_by(self, query_id: str, /) -> Output:
        """The table whose batches are those of this query, and whose commits of a cut or a swap have its marks."""


@runtime_checkable
class ReadByVersion(Protocol):
    """An output that other streams read by its versions and not by the names of its files."""

    def was_read(self, offsets: Iterable[str], cut: Cut) -> bool:
        """Whether a stream whose sources were at these offsets, as Spark logs them, has read what ``cut`` takes out."""


@runtime_checkable
class MarkedBesideRows(Protocol):
    """An output that records its newest batch next to its rows: one can be lost, or restored, without the other."""

    def may_have_rows(self, marked: int) -> bool:
        """Whether there may be rows of later batches than ``marked``, which the marker shows. Raises SinkUnreadable."""

    @property
    def shows_rows(self) -> bool:
        """Whether ``may_have_rows`` can see that the output was emptied."""

    def how_to_empty(self, marked: int) -> str:
        """What a person has to do, in the imperative, so that the output has neither rows nor a marker."""


@runtime_checkable
class MarkedElsewhere(Protocol):
    """An output whose marker is at a place that the user names, and that may be named for several outputs."""

    @property
    def marker_locations(self) -> frozenset[str]:
        """The place by each of its addresses. Of two outputs with one marker, each counts the other's batches."""


@runtime_checkable
class ReplacesUnmarked(Protocol):
    """An output that can be swapped although its marker was lost: it counts all rows that may be the stream's."""

    def without_marker(self) -> Swappable:
        """The output for a swap that does not rely on the marker: no row that may be the stream's is kept.

        ``others`` of its swap are all these rows, and not ``sure``.
        """


@runtime_checkable
class Swappable(Protocol):
    """An output of which another can be staged and put in its place in one step, where ``traits.swaps``.

    In this order: ``stage``, ``claim`` of the staged output, the query with the staged sink, ``swap_of``, ``swap``.
    Each can be repeated after it was interrupted at any point. None removes what is not marked as the operation's own.
    Nobody may write to either output during ``swap`` and ``swap_back``.
    """

    def staged(self, operation: str) -> Output:
        """The staged output of an operation: that of the sink's ``staged``."""

    def stage(self, operation: str, after: int, recorded: Mapping[int, str]) -> None:
        """Prepare the staged output with what the batches up to ``after`` wrote, -1 for none, and with rows of others.

        ``others`` of the swap are those that it does not get. ``recorded`` as for ``cut_after``. Raises Refused where
        this is not possible, or if something else is in its place.
        """

    def swap_of(self, operation: str, stream_id: str, after: int = NONE_YET) -> Swap:
        """The swap that replaces the real output as it is now by one that was staged with the batches up to ``after``.

        Raises Refused where the output cannot be swapped as it is.
        """

    def whole(self, recorded: Mapping[int, str]) -> Cut:
        """All that a swap replaces, for other streams to be asked whether they have read it; it is never cut.

        ``recorded`` as for ``cut_after``. Raises Refused where this is unknown.
        """

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        """Raises Refused if ``swap`` would. A swap that was made is not refused."""

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        """Put the staged output in the place of the real one, which is kept until ``discard_replaced``.

        Raises Refused before anything is changed: the staged output is missing, damaged or not the operation's, or the
        real one is not as ``swap`` expects. No writer can change it between this check and the swap.
        """

    def check_swap_back(self, swap: Swap, backup: WriteStore) -> None:
        """Raises Refused if ``swap_back`` would, or if the output that was replaced is no longer whole."""

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        """Undo ``swap``: every byte of the real output as before. The staged output is in staging again.

        It keeps the batches that the stream has written since. Raises Refused before anything is changed, also where
        others have written rows since that would go.
        """

    def discard_staged(self, operation: str) -> None:
        """Remove the staged output of an operation that is given up, or that was swapped back."""

    def discard_replaced(self, operation: str) -> None:
        """Remove the output that the operation replaced: from then on its swap cannot be undone."""


@runtime_checkable
class StagedByPath(Swappable, Protocol):
    """A swappable output that any of Spark's own writers writes at another path: also that of a user's program.

    A function that writes its batches itself chooses where they go: none can be.
    """

    def staged_path(self, operation: str, /) -> str:
        """The path of the staged output of an operation."""
