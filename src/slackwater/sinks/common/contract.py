"""The sinks' contract: how Spark writes (``Sink``), and the content of an output (``Output``).

Other packages use only these, independent of kinds and paths. A kind overrides the methods for which it has an answer:
the defaults do nothing, answer ``None``, or refuse. ``traits`` say what an output can do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn, TypeAlias

from slackwater.core.checkpoint import NONE_YET, Damage, Depth
from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import Cut, Identity, Owner, Swap, Traits, WriteContext, after_batch, cut_back
from slackwater.sinks.common.batch_function import WriteBatch, batch_function
from slackwater.sinks.common.problem import refuse_partitions
from slackwater.storage.protocols import ReadStore, WriteStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


LogEntries: TypeAlias = Mapping[int, str]
"""Entries of a sink's own log by batch, such as the ledger's copies."""


class Sink(ABC):
    """A stream's sink. It overrides ``attach``, or ``batch_writer`` if a function writes each batch."""

    __slots__ = ()

    creates_output = False
    """The output has its partitions from ``create_output``: a batch function takes none."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name under which its outputs are registered: ``files``, ..."""

    @property
    @abstractmethod
    def traits(self) -> Traits: ...

    @property
    def output_modes(self) -> tuple[str, ...]:
        return ("append", "update", "complete")

    @abstractmethod
    def identity(self) -> Identity: ...

    @property
    def connectors(self) -> tuple[str, ...]:
        """Needed connectors, as named by ``slackwater connectors``."""
        return ()

    @property
    def parts(self) -> tuple[Sink, ...]:
        """The sinks that write each batch, in their order."""
        return (self,)

    @property
    def called(self) -> object | None:
        """The user's function that writes the rows, or the object with ``process``."""
        return None

    def create_output(self, frame: DataFrame, partition_by: tuple[str, ...], /) -> None:
        """Create an empty output, unless it exists, before queries that read it are built. Raises PipelineError."""

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Check before the start: reachable, writable, schema accepted.

        Raises PipelineError or Refused for a permanent problem, StreamFailed if a restart may help.
        """

    def attach(self, writer: DataStreamWriter, context: WriteContext, /) -> DataStreamWriter:
        return writer.foreachBatch(batch_function(self.batch_writer(context), context))

    def start(self, writer: DataStreamWriter, context: WriteContext, /) -> StreamingQuery:
        """Start the query of the writer, with Spark's own ``start`` unless the sink is a table of the catalog."""
        return self.attach(writer, context).start()

    def batch_writer(self, context: WriteContext, /) -> WriteBatch:
        """The batch function, which skips a batch that is already in the output; asked if ``traits.combines``.

        The DataFrame may be persisted.
        """
        raise NotImplementedError

    def staged(self, operation: str, /) -> Sink:
        """The sink for an operation's staged output; see ``Output.stage``.

        Batches keep the stream id. After the swap the original sink continues with the staged checkpoint. Raises
        Refused if the output cannot be staged.
        """
        raise _unstaged(f"sink {self.kind}")


@dataclass(frozen=True, slots=True)
class SinkLog:
    """A sink's own log: numbered entries in a folder. ``parse`` parses an entry and raises FormatError."""

    store: ReadStore
    folder: str
    parse: Callable[[bytes], object]


class LostMarker(NamedTuple):
    """Rows whose marker may be lost. ``emptied``: how a person empties the output; ``shows_rows``: rows can be seen."""

    emptied: str
    shows_rows: bool = True


SwapPart = Literal["staged", "replaced"]
"""What an operation has besides the real output: the staged one, or after the swap the one that was replaced."""


class Output(ABC):
    """A stream's output on its store. Reads need no JVM."""

    @property
    @abstractmethod
    def location(self) -> str | None:
        """The place with symlinks resolved; equal locations are the same output. ``None``: no place."""

    @property
    @abstractmethod
    def traits(self) -> Traits: ...

    @property
    def exists(self) -> bool:
        """Return whether a table exists; outputs that do not know it exist."""
        return True

    def last_written(self) -> int | None:
        """The newest batch, -1 for none, ``None`` if unknowable. Raises SinkUnreadable if damaged."""
        return None

    def owner(self) -> Owner | None:
        """The owner, ``None`` without a claim. Raises SinkUnreadable for a damaged mark."""
        return None

    def claim(self, owner: Owner) -> None:
        """Claim the output; the same ``stream_id`` again updates names. Raises Refused (``sink-owned``)."""

    def release(self, stream_id: str) -> None:
        """Remove only this owner's record. Repeatable.

        Only streams of applications are released: tables with a marker are no output of these (``recognise``).
        """

    def damage(self, depth: Depth = "quick") -> tuple[Damage, ...]:
        """The output's damage. ``all`` checks every batch, else only the newest."""
        return tuple(self._damage(depth))

    def _damage(self, depth: Depth) -> Iterator[Damage]:
        return iter(())

    def orphans(self) -> tuple[str, ...]:
        """Data files left by an interrupted batch, which are not damage. Includes the batch being written."""
        return ()

    def log(self) -> SinkLog | None:
        return None

    def listed(self) -> tuple[int, Mapping[str, int]] | None:
        """The number of listed files, and of those outside by folder, without malformed entries, which are damage.

        A scheme or host unlike the newest file's counts as outside. ``None`` without absolute addresses. Raises
        OSError.
        """
        return None

    def transactions(self, application: str) -> Mapping[str, int] | None:
        """The numbers in log entries by application id; ``application``'s may be in a log checkpoint.

        ``None`` without such a log. Raises SinkUnreadable.
        """
        return None

    def relative_path(self, uri: str) -> str | None:
        """The path below the output, ``None`` for a file elsewhere."""
        return None

    @abstractmethod
    def cut_after(self, batch: int, recorded: LogEntries) -> Cut:
        """The cut of all batches after ``batch``. ``recorded`` are ledger copies of ``log()`` entries.

        Raises Refused if unknown, or for a foreign file.
        """

    @abstractmethod
    def cut(self, cut: Cut, recorded: LogEntries, backup: WriteStore) -> None:
        """Remove ``cut``; ``backup`` first gets a verified copy of each file.

        Repeatable after any interruption. Raises Refused before any change.
        """

    @abstractmethod
    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        """Raises Refused if ``restore`` would: a damaged backup, a changed or read-only output."""

    @abstractmethod
    def restore(self, cut: Cut, backup: WriteStore) -> None:
        """Undo ``cut`` byte by byte. Repeatable after any interruption.

        Raises Refused (``backup-damaged``) before any change.
        """

    @abstractmethod
    def reader_path(self) -> str:
        """The path for ``spark.readStream...load(...)``, prepared so that only committed files are read.

        Raises PipelineError if streams cannot read it.
        """

    def seen_while_cut(self, cut: Cut | None) -> str | None:
        """A sentence about readers that list files, during the cut; ``None`` if the cut is atomic.

        ``cut`` ``None``: files are unknown.
        """
        return None

    def seen_while_swapped(self) -> str | None:
        return None

    def was_read(self, offsets: Iterable[str], cut: Cut) -> bool | None:
        """Return whether a stream at these source offsets read rows of ``cut``; ``None``: it reads files by name."""
        return None

    def written_by(self, query_id: str) -> int | None:
        """The newest batch of a query that Spark's own writer marks by its id, ``None`` if not shown.

        Raises SinkUnreadable.
        """
        return self.last_written()

    def of_query(self, query_id: str, /) -> Output:
        """The query's output, if Spark's own writer marks it: its batches are the stream's."""
        return self

    def filled_by(self, query_id: str, /) -> Output | None:
        """The query's table, if cuts and swaps can get the marks of Spark's own streaming writer."""
        return None

    def lost_marker(self, marked: int) -> LostMarker | None:
        """The rows that may exist after batch ``marked``, -1 without a marker; ``None``: surely none.

        Raises SinkUnreadable.
        """
        return None

    @property
    def marker_locations(self) -> frozenset[str]:
        """Markers chosen by the user: outputs that share a marker count each other's batches."""
        return frozenset()

    def without_marker(self) -> Output | None:
        """The output without its lost marker: its swap keeps no possible row of the stream.

        ``others`` are all these rows, not ``sure``. ``None``: its swap needs the marker.
        """
        return None

    # An output is staged and swapped in atomically, if ``traits.swaps``. Order: ``stage``, ``claim`` of the staged
    # output, the query with the staged sink, ``swap_of``, ``swap``. Each is repeatable after any interruption, and
    # removes only data marked as the operation's. Nobody may write to either output during ``swap`` and ``swap_back``.

    def staged(self, operation: str) -> Output:
        self._refuse_swap(operation)

    def staged_path(self, operation: str, /) -> str | None:
        """The staged output's path if Spark's own writers can write it there, unlike batch functions."""
        return None

    def stage(self, operation: str, after: int, recorded: LogEntries) -> None:
        """Prepare the staged output with batches up to ``after`` (-1: none) and others' rows.

        The swap's ``others`` are rows that it lacks. Raises Refused if impossible, or if the name is taken.
        """
        self._refuse_swap(operation, after, recorded)

    def swap_of(self, operation: str, stream_id: str, after: int = NONE_YET) -> Swap:
        """The swap of the staged output; ``after`` is from ``stage``.

        Raises Refused if the output cannot be swapped.
        """
        self._refuse_swap(operation, stream_id, after)

    def whole(self, recorded: LogEntries) -> Cut:
        """Everything that a swap replaces, only to find its readers. Raises Refused if unknown."""
        self._refuse_swap(recorded)

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        self.swap(swap, backup)

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        """Replace the real output, which is kept until ``discard``.

        Raises Refused before any change: the staged output is missing, damaged or foreign, or the real output is
        unexpected. No writer can come in between.
        """
        self._refuse_swap(swap, backup)

    def check_swap_back(self, swap: Swap, backup: WriteStore) -> None:
        """Raises Refused if ``swap_back`` would, or if the replaced output is damaged."""
        self.swap_back(swap, backup)

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        """Restore the real output byte by byte; the staged output returns, with batches written since.

        Raises Refused before any change, also if others' newer rows would be lost.
        """
        self._refuse_swap(swap, backup)

    def discard(self, operation: str, part: SwapPart) -> None:
        """Remove the staged output, of an operation that was abandoned or swapped back, or the replaced output.

        Without the replaced output the swap can no longer be undone.
        """
        self._refuse_swap(operation, part)

    def _refuse_swap(self, *_given: object) -> NoReturn:
        raise _unstaged(self.location)


def of_query(output: Output, query_id: str | None) -> Output:
    """The output itself unless Spark's own writer marks it."""
    return output if query_id is None else output.of_query(query_id)


def of_any_query(output: Output) -> Output:
    """The output for facts that are equal for every query: possible plans and staging places."""
    return output.of_query("")


WITHOUT_CUT = "rebuild at the last written batch, which removes nothing"


def uncuttable(
    where: str | None, message: str, expected: str | None = None, found: str | None = None, hint: str = WITHOUT_CUT
) -> Refused:
    return Refused("sink-uncuttable", message, where=where, expected=expected, found=found, hint=hint)


def _unstaged(where: str | None) -> Refused:
    return Refused(
        "swap-unsupported",
        "This output cannot be staged and swapped",
        where=where,
        hint="plan again with a different --output",
    )


class PlacelessSink(Sink):
    """A sink without a place: all runs share it, whatever their options."""

    __slots__ = ()

    def identity(self) -> Identity:
        """The identity without options and functions, which may change between restarts."""
        return {"kind": self.kind}

    def check(self, _frame: DataFrame, context: WriteContext, /) -> None:
        """Rejects ``partition_by``; PySpark checks functions at the start."""
        refuse_partitions(self.kind, context)


class OpaqueOutput(Output):
    """An output that cannot be read, except by streams at ``read_at``.

    ``location`` is for messages, ``None`` without a place.
    """

    def __init__(self, kind: str, traits: Traits, location: str | None, read_at: str | None = None) -> None:
        self._kind = kind
        self._read_at = read_at
        self._traits = traits
        self._location = location

    @property
    def traits(self) -> Traits:
        return self._traits

    @property
    def location(self) -> str | None:
        return self._location

    def cut_after(self, batch: int, recorded: LogEntries) -> Cut:
        self._refuse(f"{cut_back(batch)} with {len(recorded)} recorded entries")

    def cut(self, cut: Cut, recorded: LogEntries, backup: WriteStore) -> None:
        self._refuse(cut_back(cut.after))

    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        self.restore(cut, backup)

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        self._refuse(f"restored from a cut {after_batch(cut.after)}")

    def reader_path(self) -> str:
        if self._read_at is not None:
            return self._read_at
        raise PipelineError(
            "output-unreadable", f"A stream cannot read the output of a sink of kind {self._kind}", where=self.location
        )

    def _refuse(self, what: str) -> NoReturn:
        message = f"The output of a sink of kind {self._kind} cannot be {what}"
        raise uncuttable(self.location, message, hint=f"{WITHOUT_CUT}, or use a sink that can be cut")
