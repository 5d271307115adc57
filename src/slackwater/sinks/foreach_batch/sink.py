"""``sinks.foreach_batch``: a user's batch function, made exactly-once by a transaction with a marker.

A written batch must not start a transaction. A ``with`` body cannot be skipped, so the question comes first: from the
sink for the declared database, or from the function by ``already_written``. Forgetting it fails in the first batch, not
the first restart.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from slackwater.core.checkpoint import NONE_YET
from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import Identity, Traits, WriteContext, WriterCalls
from slackwater.sinks.common.batch_function import WriteBatch, run_without_output
from slackwater.sinks.common.contract import LostMarker, OpaqueOutput, Output, Sink
from slackwater.sinks.common.database import Address, address_in, address_of, writing
from slackwater.sinks.common.directory import AppendOnlyOutput
from slackwater.sinks.common.marker import MarkedTarget, Marker
from slackwater.sinks.common.problem import refuse_partitions
from slackwater.sinks.foreach_batch import MARKED, UNMARKED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlalchemy import Connection, Engine


class Batch(int):
    """The id of a batch, an int as PySpark gives it, with the stream and the run that writes it.

    ``is_rerun``: the batch was planned before this run started, so that some of it may have been written before.
    """

    _context: WriteContext
    _name: str
    _declared: Address | None
    _engine: Engine | None
    _asked: set[str]
    _done: list[str]
    _published: dict[str, int]

    @classmethod
    def of(
        cls,
        number: int,
        context: WriteContext,
        name: str,
        declared: Address | None = None,
        published: dict[str, int] | None = None,
    ) -> Self:
        """The batch ``number`` of a run. ``declared`` is the database of ``writes_to``, which was asked already.

        ``published`` has the newest batch that the query has marked in each transaction.
        """
        batch = cls(number)
        batch._context, batch._name, batch._declared = context, name, declared
        batch._published = {} if published is None else published
        batch._engine = None if declared is None else declared.engine()
        batch._done = []
        batch._asked = set() if declared is None else {declared.location}
        return batch

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        """Pickled, as in a UDF that uses the id, it is the int alone."""
        return int, (int(self),)

    @property
    def stream(self) -> str:
        """``pipeline/stream``."""
        return self._context.stream

    @property
    def stream_id(self) -> str:
        """The id of the stream, the same over all restarts and checkpoints."""
        return self._context.stream_id

    @property
    def epoch(self) -> int:
        """The fence number of the run: a later run has a higher one."""
        return self._context.epoch

    @property
    def is_rerun(self) -> bool:
        """Whether an earlier run may have written some of the batch."""
        return self <= self._context.planned

    def already_written(self, engine: Engine | None = None, part: str = "") -> bool:
        """Whether a ``transaction`` of this batch was committed to the database of ``engine``.

        ``part`` distinguishes several transactions on one database. Raises Refused where a later run has taken over.
        """
        engine = self._engine_of(engine)
        marker = self._marker(engine, part)
        with writing(self._place(engine)):
            marker.create_table(engine)
            with engine.connect() as connection:
                mark = marker.read(connection)
        self._asked.add(self._key(engine, part))
        return mark is not None and marker.check_fence(mark, self._context).batch_id >= self

    @contextmanager
    def transaction(self, engine: Engine | None = None, part: str = "") -> Iterator[Connection]:
        """A transaction that commits the rows written in its body together with the batch's id, or neither.

        Without ``engine`` on the database of ``writes_to``. Raises PipelineError (``batch-transaction``) for a use that
        could write twice or lose rows, and Refused (``sink-fenced``, ``batch-written``) where another run has written.
        """
        engine = self._engine_of(engine)
        key, marker = self._key(engine, part), self._marker(engine, part)
        if key not in self._asked:
            raise _misuse(
                "A transaction was started without checking if its batch had been written",
                "ask first: if not batch.already_written(engine): with batch.transaction(engine) as connection: ...",
            )
        if key in self._done:
            raise _misuse(
                "A second transaction of one batch on one database would be skipped after a restart",
                'use one transaction for all rows, or names: batch.transaction(engine, part="orders")',
            )
        if self.is_marked:
            raise _misuse(
                "A transaction after the transaction on the database of writes_to would be skipped after a restart",
                f"write in the transaction on {self._place(engine)} before the one that marks the batch as written",
            )
        with engine.begin() as connection:
            # Only the marker's statements: an error of the function's own statements is the user's and stays as it is.
            with writing(self._place(engine)):
                first = marker.advance(connection, self._context, int(self), self._published.get(key, NONE_YET))
            if not first:
                raise Refused(
                    "batch-written",
                    f"Batch {int(self)} of stream {self.stream} was written by a different run meanwhile",
                    where=self._place(engine),
                    hint="run the stream again: it continues after this batch",
                )
            yield connection
        # After the commit: a transaction that was rolled back has marked nothing, and may be started again.
        self._done.append(key)
        self._published[key] = int(self)

    def delta_options(self) -> dict[str, str]:
        """Options for a write to a Delta table, which then skips a batch that it has."""
        return {"txnAppId": f"slackwater/{self.stream}/{self.stream_id}", "txnVersion": str(int(self))}

    @property
    def is_marked(self) -> bool:
        """Whether the transaction on the declared database was committed."""
        return self._declared is not None and self._declared.location in self._done

    def _engine_of(self, engine: Engine | None) -> Engine:
        found = self._engine if engine is None else engine
        if found is None:
            raise _misuse(
                "The function passes no database for its transaction",
                "give batch.transaction(engine) an engine of SQLAlchemy, or sinks.foreach_batch(..., writes_to=URL)",
            )
        return found

    def _place(self, engine: Engine) -> str:
        if engine is self._engine and self._declared is not None:
            return self._declared.location
        return Address(engine.url.set(password=None).render_as_string()).location

    def _key(self, engine: Engine, part: str) -> str:
        return f"{self._place(engine)} {part}".rstrip()

    def _marker(self, engine: Engine, part: str) -> Marker:
        declared = self._declared is not None and self._place(engine) == self._declared.location
        return Marker(marker_target(self._name, None if declared else self.stream_id, part))


def marker_target(name: str, stream_id: str | None, part: str = "") -> str:
    """The function's target in the declared database, elsewhere also the stream's."""
    return "/".join(piece for piece in ("foreach_batch", name, stream_id, part) if piece)


def _misuse(message: str, hint: str) -> PipelineError:
    return PipelineError("batch-transaction", message, hint=hint)


KIND = "foreach_batch"
URL = "writes_to"


def open_foreach_batch_output(identity: Identity) -> Output:
    name = identity.get("name", "")
    if URL not in identity:
        return OpaqueOutput(KIND, UNMARKED, None)
    return MarkedOutput(address_in(identity, URL), name)


class MarkedOutput(AppendOnlyOutput[MarkedTarget]):
    """A function with a declared database; only its marker is known."""

    def __init__(self, address: Address, name: str) -> None:
        location = f"{address.location} foreach_batch/{name}"
        super().__init__(
            KIND,
            MARKED,
            location,
            lambda: MarkedTarget(address, Marker(marker_target(name, None)), location),
            f"Only the batch function {name} knows its writes",
        )

    def lost_marker(self, _marked: int) -> LostMarker:
        return LostMarker("remove all that the function has written", shows_rows=False)


NAME_MAX = 100


@dataclass(frozen=True, slots=True)
class ForeachBatchSink(Sink):
    function: Callable[[Any, Batch], object]
    name: str
    writes_to: Address | None = None

    kind = "foreach_batch"

    @property
    def called(self) -> object:
        return self.function

    @property
    def traits(self) -> Traits:
        """Exactly-once with a declared database, else at-least-once."""
        return UNMARKED if self.writes_to is None else MARKED

    def identity(self) -> Identity:
        declared = {} if self.writes_to is None else self.writes_to.identity(URL)
        return {"kind": self.kind, "name": self.name, **declared}

    def check(self, _frame: DataFrame, context: WriteContext, /) -> None:
        refuse_partitions(self.kind, context)
        if self.writes_to is not None:
            MarkedOutput(self.writes_to, self.name).target.begin_epoch(context)

    def batch_writer(self, context: WriteContext, /) -> WriteBatch:
        """The function called with ``Batch``; skips batches in the declared database."""

        # Kept over the batches of the query: a marker that was set back is behind what this query has published.
        published: dict[str, int] = {}

        def write(frame: DataFrame, number: int) -> None:
            batch = Batch.of(number, context, self.name, self.writes_to, published)
            if self.writes_to is None:
                self.function(frame, batch)
                return
            if MarkedOutput(self.writes_to, self.name).target.is_written(context, number):
                run_without_output(frame)
                return
            self.function(frame, batch)
            if not batch.is_marked:
                raise PipelineError(
                    "batch-unmarked",
                    f"The function {self.name} returned without its transaction on the database of writes_to",
                    where=self.writes_to.location,
                    expected="with batch.transaction() as connection: ..., also for a batch without rows",
                    hint="put it last in the function; or remove writes_to: the function is then called at-least-once",
                )

        return write


def foreach_batch(
    function: Callable[[DataFrame, Batch], object],
    *,
    name: str | None = None,
    writes_to: str | None = None,
    password: str | None = None,
) -> ForeachBatchSink:
    """A function ``(df, batch)`` for each batch, as in PySpark; ``batch`` is the id with more to it (``sinks.Batch``).

    At-least-once: a batch that was interrupted is given to the function again. With ``writes_to``, the SQLAlchemy URL
    of a database, exactly-once: the function writes in ``with batch.transaction() as connection:``, and is not called
    for a batch whose transaction was committed. ``name`` identifies the function in that database, by default the
    function's own name; ``password`` is ``"env:NAME"`` or ``"file:PATH"``. Raises PipelineError.
    """
    try:
        # A signature is that of a callable only; anything else is a TypeError here.
        inspect.signature(function).bind(None, 0)
    except (TypeError, ValueError) as error:
        raise PipelineError(
            "foreach-batch-function",
            "The batch function cannot be called with a DataFrame and a batch",
            expected="a function (df, batch)",
            found=str(error),
        ) from error
    known = getattr(function, "__name__", "") if name is None else name
    if not isinstance(known, str) or not known.strip("<>") or known == "<lambda>" or len(known) > NAME_MAX:
        raise PipelineError(
            "foreach-batch-name",
            "The batch function has no usable name",
            expected='a function with "def", or name="..."',
            found=repr(known),
        )
    if writes_to is None and password is not None:
        raise PipelineError("sink-password", "A password without a database", hint="give writes_to, too")
    return ForeachBatchSink(function, known, None if writes_to is None else address_of(writes_to, password))


def recognise(calls: WriterCalls) -> Identity | None:
    return {"kind": "foreach_batch"} if calls.function == "foreachBatch" else None
