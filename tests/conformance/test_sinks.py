"""Every kind of output that needs no server."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.conformance import expected, streams
from tests.conformance.matrix import Area, before_commit, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
SMALL_TABLES = {"spark.databricks.delta.snapshotPartitions": "1"}
"""By default Delta reads the log of a table in 50 tasks."""


def test_sinks(tmp_path: Path) -> None:
    assert measured(Area("sinks", streams("sinks"), SMALL_TABLES, holds_at=before_commit), tmp_path) == expected(
        "sinks"
    )
