"""``slackwater stop``: asks, waits, and reports how it ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slackwater.core.records import LeaseRecord
from slackwater.ledger.lease import Lease, this_process
from slackwater.ledger.ledger import Ledger
from tests.cli.conftest import Slackwater
from tests.support.homes import RAN_MS, STREAM, HomeSpec, make_home

NO_SUCH_PROCESS = 4_194_400
WAIT_S_MAX = 20


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    home = make_home(tmp_path, HomeSpec(run="none"))
    with Ledger.open(home / "ledger.db", create=False) as opened:
        yield opened


def test_a_run_that_ends(slackwater: Slackwater, ledger: Ledger, tmp_path: Path) -> None:
    with Lease.acquire(ledger, STREAM, tmp_path, "run"):
        run = ledger.begin_run(STREAM, 1, "4.1.3")

        def end_when_asked() -> None:
            _until(lambda: ledger.stop_requested(run.id))
            ledger.end_run(run.id, "stopped")

        with _beside(end_when_asked):
            done = slackwater("stop", "per_page")

    assert (done.code, done.out) == (0, f"{STREAM}: stopped")


def test_a_run_that_has_not_ended_when_the_waiting_does(slackwater: Slackwater, ledger: Ledger, tmp_path: Path) -> None:
    with Lease.acquire(ledger, STREAM, tmp_path, "run"):
        run = ledger.begin_run(STREAM, 1, "4.1.3")
        done = slackwater("stop", "per_page", "--wait", "0s", "--format", "json")
        shown = slackwater("status", "--format", "json").document["streams"][0]

    assert (done.code, done.error["code"]) == (6, "stop-pending")
    assert ledger.stop_requested(run.id)
    assert shown["last_run"]["end"] == "stopping"


def test_a_stream_that_waits_to_try_again_is_asked_as_soon_as_it_runs(
    slackwater: Slackwater, ledger: Ledger, tmp_path: Path
) -> None:
    with Lease.acquire(ledger, STREAM, tmp_path, "run"):
        ledger.end_run(ledger.begin_run(STREAM, 1, "4.1.3").id, "failed", "a broker was away")

        def try_again() -> None:
            run = ledger.begin_run(STREAM, 1, "4.1.3")
            _until(lambda: ledger.stop_requested(run.id))
            ledger.end_run(run.id, "stopped")

        with _beside(try_again):
            done = slackwater("stop", "per_page", "--format", "json")

    assert (done.code, done.document["end"]) == (0, "stopped")


def test_a_stream_that_does_not_run_again_within_the_wait(
    slackwater: Slackwater, ledger: Ledger, tmp_path: Path
) -> None:
    with Lease.acquire(ledger, STREAM, tmp_path, "run"):
        run = ledger.begin_run(STREAM, 1, "4.1.3")
        ledger.end_run(run.id, "failed", "a broker was away")
        done = slackwater("stop", "per_page", "--wait", "0s", "--format", "json")

    assert (done.code, done.error["code"]) == (6, "stop-pending")
    assert f"Stream {STREAM} was not asked to stop" in done.error["message"]
    assert done.error["hint"] == f"wait for its next start: slackwater stop {STREAM} --wait 10m"
    assert not ledger.stop_requested(run.id)


def test_a_driver_that_ended_without_its_ledger(slackwater: Slackwater, ledger: Ledger, tmp_path: Path) -> None:
    lease = Lease.acquire(ledger, STREAM, tmp_path, "run")
    run = ledger.begin_run(STREAM, 1, "4.1.3")

    def end_unrecorded() -> None:
        _until(lambda: ledger.stop_requested(run.id))
        lease.release()

    with _beside(end_unrecorded):
        done = slackwater("stop", "per_page", "--format", "json", "--wait", "10s")

    assert (done.code, done.document["end"]) == (0, "killed")


def test_a_holder_that_is_dead(slackwater: Slackwater, ledger: Ledger) -> None:
    run = ledger.begin_run(STREAM, 1, "4.1.3")
    dead = this_process()._replace(pid=NO_SUCH_PROCESS)
    assert ledger.take_lease(None, LeaseRecord(STREAM, 1, dead, "run", RAN_MS, RAN_MS))

    done = slackwater("stop", "per_page", "--format", "json")

    assert (done.code, done.error["code"]) == (4, "not-running")
    assert "its driver was killed" in done.error["message"]
    assert not ledger.stop_requested(run.id)


def test_an_apply_is_not_stopped(slackwater: Slackwater, ledger: Ledger, tmp_path: Path) -> None:
    killed_before = ledger.begin_run(STREAM, 1, "4.1.3")

    with Lease.acquire(ledger, STREAM, tmp_path, "apply rebuild"):
        done = slackwater("stop", "per_page", "--format", "json")

    assert done.error["message"] == f"Stream {STREAM} does not run: it is held for apply rebuild, which ends by itself"
    assert not ledger.stop_requested(killed_before.id)


@contextmanager
def _beside(work: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join(WAIT_S_MAX)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
