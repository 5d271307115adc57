"""Adds to a program the function of the user's that writes its rows: of a batch, or of each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, cast, runtime_checkable

import structlog

from slackwater.core.program import Program
from slackwater.runtime.code_reach import reach_of
from slackwater.runtime.pickled import NOT_READ

log = structlog.get_logger(__name__)


@runtime_checkable
class CallsFunction(Protocol):
    """A sink that gives its rows to a function of the user's; ``None``: it has none."""

    @property
    def function(self) -> object | None:
        """The function, or the object with ``process``."""


def with_output_function(program: Program, sink: object) -> Program:
    """The program with the sink's function among those behind the last operator with state."""
    function = sink.function if isinstance(sink, CallsFunction) else None
    name = str(getattr(function, "__name__", type(function).__name__))
    if function is None or name in program.functions or not program.rows:
        return program
    called: Callable[..., Any] = getattr(function, "process", cast("Callable[..., Any]", function))
    try:
        reach = reach_of(called)
        values = {name: reach.values(function)}
    except NOT_READ as error:
        log.debug("the function of a sink cannot be compared", function=name, error=str(error))
        return program
    last = program.rows[0]
    return replace(
        program,
        rows=(replace(last, functions=(*last.functions, name)), *program.rows[1:]),
        functions={**program.functions, name: reach.code},
        values={**program.values, **values},
    )
