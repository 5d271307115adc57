"""Every output mode of the guide."""

from pathlib import Path

import pytest

from scripts.conformance import expected, streams
from tests.conformance.matrix import IN_PARTS, Area, before_commit, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
SMALL_TABLES = {"spark.databricks.delta.snapshotPartitions": "1"}
"""By default Delta reads the log of a table in 50 tasks."""


@IN_PARTS
def test_modes(part: str, tmp_path: Path) -> None:
    names = streams("modes", part)
    area = Area("modes", names, SMALL_TABLES, holds_at=before_commit)
    assert measured(area, tmp_path) == expected("modes", names)
