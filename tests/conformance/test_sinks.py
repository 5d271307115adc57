"""Every kind of output that needs no server."""

from pathlib import Path

import pytest

from scripts.conformance import expected, streams
from tests.conformance.matrix import IN_PARTS, Area, before_commit, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
SMALL_TABLES = {"spark.databricks.delta.snapshotPartitions": "1"}
"""By default Delta reads the log of a table in 50 tasks."""
NOT_COMPARED = ("console", "memory")
"""They have no output that outlives a run: tests/conformance/test_not_exact.py."""


@IN_PARTS
def test_sinks(part: str, tmp_path: Path) -> None:
    names = [name for name in streams("sinks", part) if name not in NOT_COMPARED]

    found = measured(Area("sinks", names, SMALL_TABLES, holds_at=before_commit), tmp_path)

    assert found == expected("sinks", names)
