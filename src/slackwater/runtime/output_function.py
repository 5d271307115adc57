"""Adds the user's row-writing functions to a program: per batch, per row, or of a data source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import structlog

from slackwater.core.program import Program
from slackwater.runtime.code_reach import Reach, Uses, reach_of
from slackwater.runtime.function_values import Taken
from slackwater.runtime.pickled import NOT_READ
from slackwater.runtime.plan_functions import data_source, name_of, together
from slackwater.runtime.process_environment import with_output_environment
from slackwater.sinks.common.registry import SINKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater.sinks.common.contract import Sink

log = structlog.get_logger(__name__)


@runtime_checkable
class CallsFunction(Protocol):
    @property
    def function(self) -> object | None:
        """The function, or the object with ``process``."""


@runtime_checkable
class Combines(Protocol):
    @property
    def members(self) -> Sequence[Sink]: ...


def with_output_functions(program: Program, sink: Sink, reach: Reach, spark: SparkSession) -> Program:
    found: dict[str, list[tuple[str, Taken]]] = {}
    for place, (function, in_driver) in enumerate(_functions(sink, spark)):
        name = name_of(function)
        if name not in program.functions and program.rows:
            try:
                taken, uses = _taken(function, reach)
                found.setdefault(name, []).append((str(place), taken))
                given = {} if in_driver else spark.sparkContext.environment
                program = with_output_environment(program, uses, given)
            except NOT_READ as error:
                log.debug("the function of a sink cannot be compared", function=name, error=str(error))
    if not found:
        return program
    last = program.rows[0]
    return replace(
        program,
        rows=(replace(last, functions=(*last.functions, *found)), *program.rows[1:]),
        functions={**program.functions, **{name: together(each).code for name, each in found.items()}},
        values={**program.values, **{name: together(each).values for name, each in found.items()}},
    )


def _functions(sink: Sink, spark: SparkSession) -> Iterator[tuple[object, bool]]:
    if isinstance(sink, Combines):
        yield from (each for member in sink.members for each in _functions(member, spark))
    elif isinstance(sink, CallsFunction) and sink.function is not None:
        yield sink.function, sink.kind == "foreach_batch"
    elif sink.kind not in SINKS.names() and (made := data_source(sink.kind, spark)) is not None:
        yield made, False


def _taken(function: object, reach: Reach) -> tuple[Taken, Uses]:
    if isinstance(function, type):
        return reach.taken(function), reach.uses([function.__name__])
    called: Callable[..., Any] = getattr(function, "process", cast("Callable[..., Any]", function))
    own = reach_of(called)
    return replace(own.taken(function), code=own.code), own.uses(None)
