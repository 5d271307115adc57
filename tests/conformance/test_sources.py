"""Every option of the guide's file source."""

from pathlib import Path

import pytest

from scripts.conformance import expected, shown, streams
from tests.conformance.matrix import IN_PARTS, Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


ICEBERG = "org.apache.iceberg.spark"
CATALOG = {
    "spark.sql.catalog.guide": f"{ICEBERG}.SparkCatalog",
    "spark.sql.catalog.guide.type": "hadoop",
    "spark.sql.catalog.guide.warehouse": "tables/iceberg",
}
CONNECTORS = sorted({row.connector for row in shown("sources") if row.connector})
"""Of those rows that this Spark has: some jars are not locked for each."""
SOCKET = "socket"
"""What it loses is shown by tests/conformance/test_not_exact.py."""
HELD = {"max_files": 2}
"""Of six files, two in a batch, the last batch is number 2."""


@IN_PARTS
def test_sources(part: str, tmp_path: Path) -> None:
    names = [name for name in streams("sources", part) if name != SOCKET]
    area = Area("sources", names, CATALOG, CONNECTORS, makers=("make_tables.py",), held=HELD)
    assert measured(area, tmp_path) == expected("sources", names)
