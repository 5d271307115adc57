"""Before a write a run asks for its lease: an earlier and a later fence number, and a ledger that cannot be read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.core.errors import EnvironmentMissing, LeaseHeld
from slackwater.core.sink import WriteContext
from slackwater.ledger.lease import EXPIRES_S, Lease, LeaseCheck, now_s
from slackwater.ledger.ledger import Ledger
from slackwater.sinks.common.batch_function import BatchFailed, batch_function
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
    with pytest.raises(LeaseHeld) as caught:
        LeaseCheck(ledger, STREAM, lease.fence - 1)()
    assert (caught.value.code, caught.value.expected) == ("lease-lost", f"fence {lease.fence - 1}")


def test_an_answer_from_before_the_machine_was_suspended_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {time.CLOCK_MONOTONIC: 100.0, time.CLOCK_BOOTTIME: 100.0}
    monkeypatch.setattr("slackwater.ledger.lease.time.clock_gettime", clocks.__getitem__)
    before = now_s()
    clocks[time.CLOCK_BOOTTIME] += 3600
    assert now_s() - before == 3600
