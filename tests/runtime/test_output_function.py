"""A function that writes a query's rows is compared as others are; state does not depend on it."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slackwater import sinks
from slackwater.core.program import InputShape, Program
from slackwater.core.verdict import Effect
from slackwater.diagnose.program_changes import changes
from slackwater.runtime.program.code_reach import CodeReach
from slackwater.runtime.program.program import with_output_functions
from slackwater.sinks.common.contract import Sink

PROGRAM = Program(rows=(InputShape("source 0"),), functions={"clean": "d1"})


def _writer(rate: object) -> Callable[..., None]:
    def write(frame: Any, _batch: Any) -> None:
        frame.write.json(f"out/{rate}")

    return write


def _other_writer(rate: object) -> Callable[..., None]:
    def write(frame: Any, _batch: Any) -> None:
        frame.write.parquet(f"out/{rate}")

    return write


class Rows:
    def __init__(self, rate: object) -> None:
        self.rate = rate

    def process(self, row: Any) -> None:
        row.update(rate=self.rate)


def _with(sink: Sink) -> Program:
    session = SimpleNamespace(sparkContext=SimpleNamespace(environment={"RATE": "of a worker"}))
    return with_output_functions(PROGRAM, sink, CodeReach("", {}), cast("Any", session))


def _program(function: Any) -> Program:
    return _with(sinks.foreach(function) if hasattr(function, "process") else sinks.foreach_batch(function))


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (_writer(2), _writer(2), None),
        (_writer(2), _writer(3), "function write has changed: it has a different value of rate"),
        (_writer(2), _other_writer(2), "function write has changed"),
        (_writer(threading.Lock()), _writer(threading.Lock()), None),
        (Rows(2), Rows(2), None),
        (Rows(2), Rows(3), "function Rows has changed: it has a different value of rate"),
    ],
)
def test_a_function_that_writes_rows(before: object, after: object, text: str | None) -> None:
    found = changes(_program(before), _program(after))
    assert [(change.code, change.effect, change.text) for change in found] == (
        [] if text is None else [("output-changed", Effect.COMPATIBLE, text)]
    )


def _of_this_run() -> Callable[..., None]:
    began, run = time.time(), uuid.uuid4()

    def write(frame: Any, _batch: Any) -> None:
        frame.write.json(f"out/{began}/{run}")

    return write


def test_what_differs_in_each_start_is_no_change() -> None:
    assert changes(_program(_of_this_run()), _program(_of_this_run())) == ()


def test_a_program_of_an_earlier_version_has_no_such_function() -> None:
    assert changes(PROGRAM, _program(_writer(2))) == ()


def _scaled(frame: Any, _batch: Any) -> None:
    frame.write.json(f"out/{os.environ.get('RATE')}")


class Scaled:
    def process(self, row: Any) -> None:
        row.update(rate=os.environ.get("RATE"))


@pytest.mark.parametrize(("function", "places"), [(_scaled, ["RATE"]), (Scaled(), [])])
def test_what_a_function_gets_from_its_process(
    function: object, places: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATE", "2")
    before = _program(function)
    monkeypatch.setenv("RATE", "3")

    found = changes(before, _program(function))

    assert [change.place for change in found] == places, "a worker has a different value than the driver, here the same"
    assert all(change.code == "environment-changed" and change.said for change in found)


def test_other_sinks_have_none() -> None:
    assert _with(sinks.console()) is PROGRAM


@pytest.mark.parametrize("place", [0, 1])
def test_each_function_of_several_outputs_is_compared(place: int) -> None:
    def program(*rates: int) -> Program:
        functions = [_writer(rate) for rate in rates]
        return _with(sinks.all_of(*(sinks.foreach_batch(one, name=f"to {one}") for one in functions)))

    rates = [2, 2]
    rates[place] = 3
    (change,) = changes(program(2, 2), program(*rates))
    assert (change.code, change.text) == (
        "output-changed",
        "function write has changed: it has a different value of rate",
    )
    assert changes(program(2, 3), program(2, 3)) == ()
