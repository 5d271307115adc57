"""``sinks.all_of``: each batch is computed once and written into several outputs in order.

An interrupted batch runs again, and outputs skip it by their own marks. There is no joint record, as it could not be
written atomically with theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.core.errors import PipelineError
from slackwater.core.sink import Traits, WriteContext
from slackwater.sinks.all_of import FEWEST, KIND, identity_of
from slackwater.sinks.all_of.output import combined_traits
from slackwater.sinks.common.batch_function import batch_function, persisted
from slackwater.sinks.common.contract import Sink
from slackwater.sinks.common.registry import catalogue, open_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True, slots=True)
class AllOfSink(Sink):
    members: tuple[Sink, ...]

    kind = KIND
    creates_output = True

    @property
    def traits(self) -> Traits:
        return combined_traits([member.traits for member in self.members])

    @property
    def output_modes(self) -> tuple[str, ...]:
        first, *others = self.members
        return tuple(mode for mode in first.output_modes if all(mode in other.output_modes for other in others))

    @property
    def connectors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for member in self.members for name in member.connectors))

    def identity(self) -> Mapping[str, str]:
        return identity_of([member.identity() for member in self.members])

    def staged(self, operation: str, /) -> AllOfSink:
        return AllOfSink(tuple(member.staged(operation) for member in self.members))

    def create_output(self, frame: DataFrame, partition_by: tuple[str, ...], /) -> None:
        for member in self.members:
            member.create_output(frame, partition_by)

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        for member in self.members:
            member.check(frame, context)

    def attach(self, writer: DataStreamWriter, context: WriteContext, /) -> DataStreamWriter:
        writes = [member.batch_writer(context) for member in self.members]
        return writer.foreachBatch(batch_function(_one_after_the_other(writes), context))


def all_of(*sinks: Sink) -> AllOfSink:
    """Several sinks for one stream: each batch is computed once and written into one after the other.

    Each output keeps its own mark, so that a batch which was interrupted is written into those that lack it only. The
    guarantee is that of the weakest. Raises PipelineError for fewer than two sinks, one that Spark writes by itself,
    sinks without an output mode in common, and two with one output.
    """
    given: tuple[object, ...] = sinks
    for sink in given:
        if not isinstance(sink, Sink) or not sink.traits.combines:
            raise _not_combined(sink)
    if len(sinks) < FEWEST:
        raise PipelineError(
            "all-of-sinks",
            "all_of() needs at least two sinks",
            expected="sinks.all_of(sink, sink, ...)",
            found=str(len(sinks)),
            hint="give a single sink to the stream itself",
        )
    made = AllOfSink(sinks)
    if not made.output_modes:
        raise PipelineError(
            "all-of-modes",
            "The sinks have no output mode in common",
            found="; ".join(f"{sink.kind}: {', '.join(sink.output_modes)}" for sink in sinks),
            hint="write into each of them by a stream of its own",
        )
    _check_apart(sinks)
    return made


def _one_after_the_other(writes: list[Callable[[DataFrame, int], None]]) -> Callable[[DataFrame, int], None]:
    def write(frame: DataFrame, batch: int) -> None:
        # Computed again for each output, a query that is not deterministic would give them different rows.
        with persisted(frame):
            for one in writes:
                one(frame, batch)

    return write


def _check_apart(sinks: tuple[Sink, ...]) -> None:
    outputs = [open_output(sink.identity()) for sink in sinks if sink.traits.one_writer]
    twice = _first_repeated(frozenset({one.location} - {None}) for one in outputs)
    if twice is not None:
        raise PipelineError(
            "sink-shared",
            "Two of the sinks write to one output; the second would skip each batch",
            where=twice,
            hint="give each of the sinks an output of its own",
        )
    twice = _first_repeated(one.marker_locations for one in outputs)
    if twice is not None:
        raise PipelineError(
            "sink-marker-shared",
            "Two of the sinks have one marker topic; the second would skip each batch",
            where=twice,
            hint="leave out marker_topic, or give each sink another one",
        )


def _first_repeated(places: Iterable[frozenset[str | None]]) -> str | None:
    seen: set[str | None] = set()
    for one in places:
        if shared := seen & one:
            return min(filter(None, shared))
        seen |= one
    return None


def _not_combined(sink: object) -> PipelineError:
    possible = dict.fromkeys(entry.name for entry in catalogue() if entry.traits.combines)
    kind = getattr(sink, "kind", None)
    known = isinstance(kind, str) and not isinstance(sink, type)
    return PipelineError(
        "all-of-sink",
        f"The {kind} sink cannot be one of several: Spark writes it by itself, and not by a batch function"
        if known
        else "This is not a sink that can be one of several",
        expected=" or ".join(f"sinks.{name}" for name in possible),
        found=f"sinks.{kind}" if known else repr(sink),
        hint="write it by a stream of its own, which reads the same source",
    )
