"""The ids in an Iceberg table of a directory."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.table import StaticTable


def iceberg_ids(out: Path) -> list[int]:
    """Sorted; a row that was written twice is there twice."""
    metadata = out / "metadata"
    version = (metadata / "version-hint.text").read_text().strip()
    table = StaticTable.from_metadata(f"file://{metadata}/v{version}.metadata.json")
    return sorted(table.scan().to_arrow().column("id").to_pylist())
