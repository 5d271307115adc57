"""Every join of the guide: of a stream with a table, and of streams."""

from pathlib import Path

import pytest

from scripts.conformance import expected, streams
from tests.conformance.matrix import IN_PARTS, Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
ONE_PARTITION = {"spark.sql.shuffle.partitions": "1"}
"""A join has four state stores in each; tests/restart/test_bounded_state.py rebuilds one with two partitions."""


@IN_PARTS
def test_joins(part: str, tmp_path: Path) -> None:
    names = streams("joins", part)
    assert measured(Area("joins", names, ONE_PARTITION), tmp_path) == expected("joins", names)
