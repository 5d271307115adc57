"""Programs that supervise their queries in a loop: reading their queries ends."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.runtime.application.capture import REPEATS_MAX, Capture, NotStarted
from slackwater.runtime.application.writers import MANAGER, Given, Start
from tests.unchanged.scene import Scene

DAYS = 60
"""A program may start a query for each, one after the other, and then another one."""


@pytest.fixture
def loops() -> set[object]:
    return set()


@pytest.fixture
def capture(loops: set[object]) -> Capture:
    return Capture(Path(__file__), lambda: pytest.fail("not run again"), loops)


def _start(capture: Capture, name: str) -> NotStarted:
    conf = SimpleNamespace(get=lambda _key, default=None: default)
    frame: Any = SimpleNamespace(sparkSession=SimpleNamespace(conf=conf))
    given = Given(options={"checkpointlocation": f"/checkpoints/{name}", "path": f"/{name}"}, name=name)
    return capture.start(Start(frame, given, None, lambda: None))


def _restarts(capture: Capture) -> None:
    while True:
        _start(capture, "one").awaitTermination()


def _restarts_without_waiting(capture: Capture) -> None:
    while True:
        try:
            _start(capture, "one")
        except RuntimeError:
            continue


def _awaits(capture: Capture) -> None:
    query = _start(capture, "one")
    while True:
        query.awaitTermination(10)


def _reports(capture: Capture) -> None:
    queries = [_start(capture, "one"), _start(capture, "two")]
    while True:
        assert [(query.status, query.lastProgress, query.isActive) for query in queries]


def _waits_for_a_batch(capture: Capture) -> None:
    query = _start(capture, "one")
    while not query.recentProgress:
        pass


def _looks_at_all(capture: Capture) -> None:
    _start(capture, "one")
    active = capture.replacements()[MANAGER]["active"]
    while True:
        active(lambda _manager: [], None)


@pytest.mark.parametrize(
    "supervise", [_restarts, _restarts_without_waiting, _awaits, _reports, _waits_for_a_batch, _looks_at_all]
)
def test_a_loop_ends(capture: Capture, supervise: Callable[[Capture], None]) -> None:
    with pytest.raises(SystemExit) as end:
        supervise(capture)
    assert end.value.code == 0
    assert "one" in capture.starts


def test_a_loop_that_sleeps_ends_when_it_has_slept(
    capture: Capture, loops: set[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    asked: list[object] = []

    def supervise(program: Capture) -> None:
        nonlocal clock
        query = _start(program, "one")
        while True:
            asked.append(query.status)
            clock += 4

    for program, times in ((capture, 3), (Capture(Path(__file__), lambda: capture, loops), 1)):
        asked.clear()
        with pytest.raises(SystemExit):
            supervise(program)
        assert len(asked) == times


def test_the_thread_of_a_loop_ends_alone(capture: Capture) -> None:
    def work() -> None:
        # Of a thread Python does not report this exception, but pytest does.
        with pytest.raises(SystemExit):
            _restarts(capture)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    _start(capture, "two")
    assert capture.starts.keys() == {"one", "two"}


def test_what_is_no_endless_loop_is_read_to_its_end(capture: Capture) -> None:
    # One line for many queries, and a helper that reports all of them after each start.
    queries: list[NotStarted] = []
    for number in range(REPEATS_MAX + 20):
        queries.append(_start(capture, f"query{number}"))
        assert all(query.awaitTermination(1) for query in queries)
        assert not any(query.isActive for query in queries)
    # One query for each of some days.
    for _ in range(DAYS):
        _start(capture, "days").awaitTermination()
    _start(capture, "last").awaitTermination()
    assert len(capture.starts) == len(queries) + 2


@pytest.mark.spark
def test_a_program_that_supervises_its_query_is_checked(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "restarted.py")
    scene.add_files("data", 1)
    ticks = 'spark.readStream.format("rate").load().writeStream.format("memory").queryName("ticks").start()'
    text, start = scene.program.read_text(), "\nquery = start()"
    scene.program.write_text(text.replace(start, f"\n{ticks}\nspark.table('ticks').show(){start}"))
    shown = scene.type("check", "restarted.py", "--", "data")
    assert "watched/counted" in shown
    assert "the program waits for its queries in a loop" in shown
    assert "restarted.py:" in shown
