from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.ledger.home import Home
from slackwater.ledger.lease import keeper
from slackwater.ledger.lease.keeper import LeaseKeeper
from slackwater.ledger.lease.lease import Lease
from slackwater.ledger.ledger import Ledger
from tests.support.ledgers import STREAM


def test_a_lease_is_renewed_while_the_next_one_is_waited_for(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, name = STREAM.split("/")
    streams: list[Any] = [
        SimpleNamespace(pipeline=pipeline, name=one, full_name=f"{pipeline}/{one}") for one in (name, "later")
    ]
    renewed = threading.Event()

    def wait(_ledger: Ledger, stream: str, **_options: object) -> None:
        if stream == streams[1].full_name:
            assert renewed.wait(30), "the first lease was not renewed"

    monkeypatch.setattr(keeper, "HEARTBEAT_S", 0.01)
    monkeypatch.setattr(keeper, "wait_until_free", wait)
    monkeypatch.setattr(Lease, "heartbeat", lambda _lease: renewed.set())
    with LeaseKeeper(streams, Home(tmp_path), ledger, "run", lambda _message: None) as leases:
        assert [leases.fence(one.full_name) for one in streams] == [1, 1]
    assert ledger.lease(STREAM) is not None
