"""Starts and restarts of a stream without Spark: what ends them is a ledger, a lease or a request to stop."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.core.errors import EnvironmentMissing, LeaseHeld
from slackwater.core.program import Trigger
from slackwater.ledger.home import Home
from slackwater.ledger.lease import Lease, lost
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.run.runner import Application, NotStarted, RunRequest
from slackwater.runtime.run.stream_run import RunServices, StreamRun
from tests.support.errors import raises_code
from tests.support.homes import STATELESS, STREAM, HomeSpec, make_home

WAIT_S_MAX = 20
ANY: Any = None
BUILT: Any = SimpleNamespace(
    definition=SimpleNamespace(settings={}, partition_by=(), sink=None, trigger=Trigger("available-now")),
    frame=None,
    profile=None,
    program=None,
    sources=(),
    upstreams=frozenset(),
)
"""A stream whose query is never started."""


class UnreliableLedger:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.unreachable = False

    def __getattr__(self, name: str) -> Any:
        return self._refuse if self.unreachable else getattr(self._ledger, name)

    def _refuse(self, *_: object, **__: object) -> None:
        raise EnvironmentMissing("ledger-unreachable", "The ledger cannot be used")


@dataclass
class Scene:
    """A home whose stream has committed six batches, and what a run says of it."""

    home: Path
    ledger: Any
    said: list[str] = field(default_factory=list)

    def stream_run(self, *, epoch: int = 1) -> StreamRun:
        services = RunServices(Home(self.home), self.ledger, ANY, "4.1.3", 1, self.said.append)
        return StreamRun(services, self.ledger.find_stream(STREAM), BUILT, Trigger("processing-time"), epoch)

    def asked_run(self) -> int:
        run: int = self.ledger.begin_run(STREAM, 1, "4.1.3").id
        assert self.ledger.request_stop(STREAM).id == run
        return run


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    home = make_home(tmp_path, HomeSpec(state=None, layout=STATELESS))
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        yield Scene(home, UnreliableLedger(ledger))


def _ended_query(scene: Scene, run: int, error: Exception | None) -> Any:
    def end(end: str, _failure: object = None) -> None:
        scene.ledger.end_run(run, end)

    return SimpleNamespace(query=SimpleNamespace(isActive=False, exception=lambda: error), end=end)


def _poll(run: StreamRun, until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not until() and time.monotonic() < deadline:
        run.poll()
        time.sleep(0.05)


def test_restarts_end_while_the_ledger_is_unreachable(scene: Scene) -> None:
    run = scene.stream_run()
    scene.ledger.unreachable = True

    run.start()
    _poll(run, lambda: run.outcome is not None or run.restarts > 1)

    assert run.outcome is not None, scene.said
    assert (run.outcome.end, run.outcome.restarts) == ("failed", 1)
    assert "ledger-unreachable" in str(run.outcome.reason)


def test_a_driver_that_has_lost_its_lease_records_nothing(scene: Scene, tmp_path: Path) -> None:
    Lease.acquire(scene.ledger, STREAM, tmp_path, "run").release()
    run, before = scene.stream_run(), scene.ledger.runs(STREAM)
    with Lease.acquire(scene.ledger, STREAM, tmp_path, "run"), raises_code(LeaseHeld, "lease-lost"):
        run.start()

    assert scene.ledger.runs(STREAM) == before
    assert not (tmp_path / "out" / "_slackwater.json").exists()


def test_no_stage_starts_once_a_lease_was_lost(scene: Scene) -> None:
    loaded: Any = SimpleNamespace(reference=str(scene.home.parent / "clicks.py"))
    session: Any = SimpleNamespace(
        _jsparkSession=SimpleNamespace(sessionUUID=str), streams=SimpleNamespace(addListener=id, removeListener=id)
    )
    built: Any = SimpleNamespace(**vars(BUILT) | {"frame": SimpleNamespace(sparkSession=session)})
    built.definition = SimpleNamespace(**vars(BUILT.definition) | {"name": "per_page"})
    leases: Any = SimpleNamespace(lost=lost("clicks/other", 1, None), fence=lambda _: 1, release=id)
    display: Any = SimpleNamespace(say=scene.said.append, state=lambda *_: None, batch=id)
    request = RunRequest(loaded, ANY, until_caught_up=True)
    application = Application(request, Home(scene.home), scene.ledger, display, session)

    streams = [(scene.ledger.find_stream(STREAM), built)]
    outcomes = application.run(streams, leases, NotStarted(2, display))

    assert [(one.end, one.reason) for one in outcomes.values()] == [
        ("not-started", "the run was stopped before its turn")
    ]


@pytest.mark.parametrize("error", [ConnectionError("Connection refused"), None], ids=["failed", "finished"])
def test_a_stop_of_a_query_that_ended_before_it_was_noticed(scene: Scene, error: Exception | None) -> None:
    """The query failed and would be restarted, or ran a batch that was owed and would be started again."""
    run = scene.stream_run()
    run._active, run._once_more = _ended_query(scene, scene.asked_run(), error), error is None

    run.poll()

    assert run.outcome is not None, scene.said
    assert (run.outcome.end, run.restarts) == ("stopped", 0)
    assert scene.ledger.last_run(STREAM).end == ("failed" if error else "finished")
    assert scene.said == (
        ["clicks/per_page: Connection refused; not restarted, as a stop was requested"] if error else []
    )


def test_a_stop_that_could_not_be_read_counts_at_the_next_start(scene: Scene) -> None:
    run = scene.stream_run()
    ended = _ended_query(scene, scene.asked_run(), ConnectionError("Connection refused"))
    ended.end = lambda *_: None  # as without its ledger
    run._active = ended
    scene.ledger.unreachable = True
    run.poll()
    assert run.state == "waiting", run.outcome
    scene.ledger.unreachable = False

    _poll(run, lambda: run.outcome is not None)

    assert run.outcome is not None
    assert run.outcome.end == "stopped"


def test_a_stop_of_an_earlier_driver_does_not_count(scene: Scene) -> None:
    scene.ledger.end_run(scene.asked_run(), "stopped")
    run = scene.stream_run()

    with pytest.raises(LeaseHeld):
        run.start()

    assert run.outcome is None
