"""``sinks.foreach_batch``: a user's batch function, made exactly-once by a transaction with a marker."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slackwater.core.errors import PipelineError
from slackwater.core.sink import Traits, WriteContext, WriterCalls
from slackwater.sinks.common.batch_function import run_without_output
from slackwater.sinks.common.contract import Output, Sink
from slackwater.sinks.common.database.address import Address, address_in, address_of
from slackwater.sinks.common.database.marked import MarkedTarget
from slackwater.sinks.common.database.marker import Marker
from slackwater.sinks.common.opaque_output import AppendOnlyOutput, OpaqueOutput
from slackwater.sinks.common.options import refuse_partitions
from slackwater.sinks.foreach_batch.batch import Batch, marker_target
from slackwater.sinks.foreach_batch.traits import MARKED, UNMARKED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


KIND = "foreach_batch"
URL = "writes_to"


def open_foreach_batch_output(identity: Mapping[str, str]) -> Output:
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
            f"What the batch function {name} has written is known to the function only",
        )

    shows_rows = False

    def may_have_rows(self, _marked: int) -> bool:
        return True

    def how_to_empty(self, _marked: int) -> str:
        return "remove all that the function has written"


NAME_MAX = 100


@dataclass(frozen=True, slots=True)
class ForeachBatchSink(Sink):
    function: Callable[[Any, Batch], object]
    name: str
    writes_to: Address | None = None

    kind = "foreach_batch"

    @property
    def traits(self) -> Traits:
        """Exactly-once with a declared database, else at-least-once."""
        return UNMARKED if self.writes_to is None else MARKED

    def identity(self) -> Mapping[str, str]:
        declared = {} if self.writes_to is None else self.writes_to.identity(URL)
        return {"kind": self.kind, "name": self.name, **declared}

    def check(self, _frame: DataFrame, context: WriteContext, /) -> None:
        refuse_partitions(self.kind, context)
        if self.writes_to is not None:
            MarkedOutput(self.writes_to, self.name).target.begin_epoch(context)

    def batch_writer(self, context: WriteContext, /) -> Callable[[DataFrame, int], None]:
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
                raise _unmarked(self.name, self.writes_to)

        return write


def foreach_batch(
    function: Callable[[Any, Batch], object],
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
    _check_function(function)
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


def _check_function(function: Any) -> None:
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


def _unmarked(name: str, writes_to: Address) -> PipelineError:
    return PipelineError(
        "batch-unmarked",
        f"The function {name} returned without its transaction on the database of writes_to",
        where=writes_to.location,
        expected="with batch.transaction() as connection: ..., also for a batch without rows",
        hint="put it last in the function; or remove writes_to, and the function is called at-least-once",
    )


def recognise(calls: WriterCalls) -> Mapping[str, str] | None:
    return {"kind": "foreach_batch"} if calls.function == "foreachBatch" else None
