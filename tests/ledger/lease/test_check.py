"""Before a write a run asks for its lease: an earlier and a later fence number, and a ledger that cannot be read."""

import os
import pathlib
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.core.errors import EnvironmentMissing, LeaseHeld
from slackwater.core.sink import WriteContext
from slackwater.ledger import lease_keeper as keeper
from slackwater.ledger.home import Home
from slackwater.ledger.lease import (
    EXPIRES_S,
    UNKNOWN_START,
    Lease,
    LeaseCheck,
    can_look_up,
    is_alive,
    now_s,
    start_time,
    this_process,
)
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.ledger import Ledger
from slackwater.sinks.common.batch_function import BatchFailed, batch_function
from tests.support.errors import raises_code
from tests.support.ledgers import STREAM


@pytest.fixture
def lease(ledger: Ledger, tmp_path: Path) -> Iterator[Lease]:
    with Lease.acquire(ledger, STREAM, tmp_path, "run") as held:
        yield held


def test_a_batch_is_not_written_without_the_lease(ledger: Ledger, lease: Lease, tmp_path: Path) -> None:
    written: list[int] = []
    check = LeaseCheck(ledger, STREAM, lease.fence)
    context = WriteContext("5f0e", STREAM, lease.fence, "append", check_lease=check)
    frame: Any = None
    write = batch_function(lambda _, batch: written.append(batch), context)
    write(frame, 1)
    lease.release()
    with Lease.acquire(ledger, STREAM, tmp_path, "run"), pytest.raises(BatchFailed, match=r"^\[lease-lost\]"):
        write(frame, 2)
    assert written == [1]


def test_a_lease_that_is_lost_while_a_batch_is_written_fails_it(ledger: Ledger, lease: Lease, tmp_path: Path) -> None:
    """Spark does not commit this batch: the mark of the sink shows the next run that it is there."""

    def lose(_: object, _batch: int) -> None:
        lease.release()
        Lease.acquire(ledger, STREAM, tmp_path, "run")

    context = WriteContext("5f0e", STREAM, 1, "append", check_lease=LeaseCheck(ledger, STREAM, lease.fence))
    frame: Any = None
    with pytest.raises(BatchFailed, match=r"^\[lease-lost\]"):
        batch_function(lose, context)(frame, 1)


def test_an_unreachable_ledger_stops_a_run_once_the_lease_may_be_gone() -> None:
    def unreachable(_stream: str) -> None:
        raise EnvironmentMissing("ledger-unreachable", "The ledger cannot be used")

    ledger: Any = SimpleNamespace(lease=unreachable)
    now = now_s()
    LeaseCheck(ledger, STREAM, 1, now - EXPIRES_S / 4)()
    with pytest.raises(EnvironmentMissing, match="ledger"):
        LeaseCheck(ledger, STREAM, 1, now - EXPIRES_S)()


def test_the_error_names_both_fences(ledger: Ledger, lease: Lease) -> None:
    with raises_code(LeaseHeld, "lease-lost", expected=f"fence {lease.fence - 1}"):
        LeaseCheck(ledger, STREAM, lease.fence - 1)()


def test_an_answer_from_before_the_machine_was_suspended_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {time.CLOCK_MONOTONIC: 100.0, time.CLOCK_BOOTTIME: 100.0}
    monkeypatch.setattr("slackwater.ledger.lease.time.clock_gettime", clocks.__getitem__)
    before = now_s()
    clocks[time.CLOCK_BOOTTIME] += 3600
    assert now_s() - before == 3600


def test_a_lease_is_renewed_while_the_next_one_is_waited_for(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [STREAM, f"{STREAM.partition('/')[0]}/later"]
    renewed = threading.Event()

    def wait(_ledger: Ledger, stream: str, **_options: object) -> None:
        if stream == streams[1]:
            assert renewed.wait(30), "the first lease was not renewed"

    monkeypatch.setattr(keeper, "HEARTBEAT_S", 0.01)
    monkeypatch.setattr(keeper, "wait_until_free", wait)
    monkeypatch.setattr(Lease, "heartbeat", lambda _lease: renewed.set())
    with LeaseKeeper(streams, Home(tmp_path), ledger, "run", lambda _message: None) as leases:
        assert [leases.fence(one) for one in streams] == [1, 1]
    assert ledger.lease(STREAM) is not None


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="start times come from /proc")
def test_this_process_lives() -> None:
    holder = this_process()
    assert holder.pid == os.getpid()
    assert holder.pid_started > 0
    assert can_look_up(holder)
    assert is_alive(holder.pid, holder.pid_started)


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="start times come from /proc")
def test_a_process_id_that_was_given_out_again_is_another_process() -> None:
    holder = this_process()
    assert not is_alive(holder.pid, holder.pid_started - 1)


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="start times come from /proc")
def test_an_unknown_start_time_counts_as_the_same_process() -> None:
    assert is_alive(os.getpid(), UNKNOWN_START)
    assert is_alive(os.getpid(), None)


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="start times come from /proc")
def test_a_process_has_exited_even_while_its_parent_has_not_waited_for_it() -> None:
    process = subprocess.Popen(["sleep", "60"])
    started = start_time(process.pid)
    assert started is not None
    assert is_alive(process.pid, started)
    process.kill()
    _wait_for_zombie(process.pid)
    assert not is_alive(process.pid, started)
    process.wait()
    assert not is_alive(process.pid, started)


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="start times come from /proc")
def test_a_command_with_brackets_and_spaces_in_its_name_is_read_well() -> None:
    rename = "import sys; open('/proc/self/comm', 'w').write('a) Z 1 (b'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(["python3", "-c", rename], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        started = start_time(process.pid)
        assert started is not None
        assert started >= this_process().pid_started


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="start times come from /proc")
@pytest.mark.parametrize("change", [{"host": "elsewhere"}, {"pid_space": "an earlier boot"}])
def test_ids_of_another_host_boot_or_container_cannot_be_looked_up(change: dict[str, str]) -> None:
    assert not can_look_up(this_process()._replace(**change))  # type: ignore[arg-type]  # only its texts are changed


def _wait_for_zombie(pid: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with pathlib.Path(f"/proc/{pid}/stat").open() as stat:
            if ") Z " in stat.read():
                return
        time.sleep(0.005)
    pytest.fail("the process did not end")
