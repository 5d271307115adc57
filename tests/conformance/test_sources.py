"""Every option of the guide's file source."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.conformance import expected, shown, streams
from tests.conformance.matrix import Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


ICEBERG = "org.apache.iceberg.spark"
CATALOG = {
    "spark.sql.catalog.guide": f"{ICEBERG}.SparkCatalog",
    "spark.sql.catalog.guide.type": "hadoop",
    "spark.sql.catalog.guide.warehouse": "tables/iceberg",
}
CONNECTORS = sorted({row.connector for row in shown("sources") if row.connector})
"""Of those rows that this Spark has: some jars are not locked for each."""
NAMES = [name for name in streams("sources") if name != "socket"]
"""What a socket loses is shown by tests/conformance/test_not_exact.py."""
SOURCES = Area("sources", NAMES, CATALOG, CONNECTORS, makers=("make_tables.py",))


def test_sources(tmp_path: Path) -> None:
    assert measured(SOURCES, tmp_path) == {
        name: outcome for name, outcome in expected("sources").items() if name in NAMES
    }
