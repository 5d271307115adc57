from __future__ import annotations

import threading
from pathlib import Path

import pytest

from slackwater.ledger import lease_keeper as keeper
from slackwater.ledger.home import Home
from slackwater.ledger.lease import Lease
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.ledger import Ledger
from tests.support.ledgers import STREAM


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
