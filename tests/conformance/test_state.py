"""Arbitrary state: functions of the user's own over all rows of a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.conformance import expected, streams
from tests.conformance.matrix import Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
STATE = "org.apache.spark.sql.execution.streaming.state"
ROCKSDB = {"spark.sql.streaming.stateStore.providerClass": f"{STATE}.RocksDBStateStoreProvider"}
"""transformWithState needs it."""


def test_state(tmp_path: Path) -> None:
    assert measured(Area("state", streams("state"), ROCKSDB), tmp_path) == expected("state")
