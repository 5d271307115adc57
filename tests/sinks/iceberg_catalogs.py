"""Tables of JDBC catalogs of Iceberg, written and read by pyiceberg without the code under test.

A catalog is a database in SQLite or PostgreSQL with the tables that Iceberg's JdbcCatalog makes; ``slackwater.toml`` in
a folder names it as Spark does.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.sinks.iceberg_tables import PROPERTY, SCHEMA

NAME = "lake.gold.hourly"


@dataclass(frozen=True)
class Lake:
    """The catalog ``lake`` in the database at ``address``, as Spark's settings below ``folder`` name it."""

    folder: Path
    address: str
    settings: Mapping[str, str]

    @contextmanager
    def catalog(self) -> Iterator[SqlCatalog]:
        catalog = SqlCatalog("lake", uri=self.address, warehouse=str(self.folder / "warehouse"))
        try:
            yield catalog
        finally:
            catalog.close()

    def write_settings(self, **more: str) -> None:
        values = {f"spark.sql.catalog.lake{key}": value for key, value in {**self.settings, **more}.items()}
        lines = ["[spark]", *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values.items())]
        (self.folder / "slackwater.toml").write_text("\n".join(lines) + "\n")

    def create(self, version: int = 2) -> None:
        """Create the table, with a snapshot without files, as Spark does."""
        with self.catalog() as catalog:
            catalog.create_namespace_if_not_exists("gold")
            table = catalog.create_table("gold.hourly", SCHEMA, properties={"format-version": str(version)})
            with table.transaction() as transaction, transaction.update_snapshot().fast_append():
                pass

    def write_batch(self, stream: str, batch: int, *, epoch: int = 1, branch: str = "main") -> None:
        """Commit one batch of one row with its marker, then its property, as the sink would."""
        marker = {"wap.id": f"slackwater:{stream}:{epoch}:{batch}:0123"}
        snapshot = self.append(batch, marker, branch)
        mark = {"stream": stream, "epoch": epoch, "batch": batch, "snapshot": snapshot}
        key = PROPERTY if branch == "main" else f"{PROPERTY}.{branch}"
        self.set_properties({key: json.dumps(mark)})

    def append(self, value: int, summary: Mapping[str, str] | None = None, branch: str = "main") -> int:
        """Append a row in one snapshot; its id."""
        with self.catalog() as catalog:
            table = catalog.load_table("gold.hourly")
            folder = Path(urlsplit(table.location()).path, "data")
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{branch}-{value}-{len(list(folder.iterdir()))}.parquet"
            pyarrow.parquet.write_table(pa.table({"b": pa.array([value], pa.int64())}), file)
            table.add_files([str(file)], snapshot_properties=dict(summary or {}), branch=branch)
            snapshot = table.refresh().snapshot_by_name(branch)
            assert snapshot is not None
            return snapshot.snapshot_id

    def set_properties(self, properties: Mapping[str, str]) -> None:
        with self.catalog() as catalog, catalog.load_table("gold.hourly").transaction() as transaction:
            transaction.set_properties(dict(properties))

    def rows(self, branch: str = "main") -> list[int]:
        with self.catalog() as catalog:
            table = catalog.load_table("gold.hourly")
            snapshot = table.snapshot_by_name(branch)
            if snapshot is None:
                return []
            found: list[dict[str, Any]] = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
            return sorted(row["b"] for row in found)

    def table(self) -> Table:
        with self.catalog() as catalog:
            return catalog.load_table("gold.hourly")


def in_sqlite(folder: Path) -> Lake:
    database = folder / "catalog.db"
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{database}",
        ".warehouse": str(folder / "warehouse"),
    }
    return Lake(folder, f"sqlite:///{database}", settings)


def in_postgres(folder: Path, url: str) -> Lake:
    """A catalog in a database of PostgreSQL; ``url`` is libpq's, with a host and port."""
    parts = urlsplit(url)
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        ".uri": f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}",
        ".jdbc.user": parts.username or "",
        ".jdbc.schema-version": "V1",
        ".warehouse": str(folder / "warehouse"),
    }
    return Lake(folder, url.replace("postgresql:", "postgresql+psycopg:"), settings)
