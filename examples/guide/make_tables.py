"""Writes the tables that two examples in sources/ read: the readings as a Delta and as an Iceberg table.

    python make_tables.py [FOLDER]

writes ``tables/delta`` and ``tables/iceberg/db/readings`` into FOLDER (default: the working directory), with a version
for each file of readings. A Hadoop catalog of Spark's finds the Iceberg table by its place below ``tables/iceberg``.
"""

import shutil
import sys
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from make_input import Rows, readings
from pyiceberg.catalog.memory import InMemoryCatalog

SCHEMA = pa.schema(
    [("at", pa.timestamp("us", "UTC")), ("device", pa.string()), ("kind", pa.string()), ("n", pa.int64())]
)


def write(folder: Path) -> None:
    """Write both tables into the folder."""
    write_delta(folder / "tables" / "delta")
    write_iceberg(folder.resolve() / "tables" / "iceberg" / "db" / "readings")


def write_delta(table: Path) -> None:
    """A commit for each file."""
    for rows in readings():
        write_deltalake(str(table), batch(rows), mode="append")


def write_iceberg(folder: Path) -> None:
    """A snapshot for each file, and the newest metadata under the name that a Hadoop catalog reads."""
    folder.mkdir(parents=True)
    catalog = InMemoryCatalog("guide")
    catalog.create_namespace("db")
    table = catalog.create_table("db.readings", SCHEMA, location=str(folder))
    for rows in readings():
        table.append(batch(rows))
    newest = table.metadata_location.removeprefix("file://")
    shutil.copy(newest, folder / "metadata" / "v1.metadata.json")
    (folder / "metadata" / "version-hint.text").write_text("1")


def batch(rows: Rows) -> pa.Table:
    """The rows of a file as a table."""
    return pa.Table.from_pylist([{**row, "at": datetime.fromisoformat(str(row["at"]))} for row in rows], SCHEMA)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
