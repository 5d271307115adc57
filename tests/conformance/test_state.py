"""Arbitrary state: functions of the user's own over all rows of a key."""

from pathlib import Path

import pytest

from scripts.conformance import expected, streams
from tests.conformance.matrix import IN_PARTS, Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
STATE = "org.apache.spark.sql.execution.streaming.state"
ROCKSDB = {"spark.sql.streaming.stateStore.providerClass": f"{STATE}.RocksDBStateStoreProvider"}
"""transformWithState needs it."""
ANY_ROW_ORDER = ("in_pandas_processing_time", "in_pandas_event_time", "tws_ttl")
"""Rebuilt at the user's word; the others are refused without it."""


@IN_PARTS
def test_state(part: str, tmp_path: Path) -> None:
    names = streams("state", part)
    options = dict.fromkeys(ANY_ROW_ORDER, ("--row-order", "any"))
    assert measured(Area("state", names, ROCKSDB, plan_options=options), tmp_path) == expected("state", names)
