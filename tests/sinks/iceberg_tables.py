"""Iceberg tables in directories, written and read by pyiceberg without the code under test.

pyiceberg numbers metadata by other names than a Hadoop catalog: each commit is copied to ``vN.metadata.json``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.types import LongType, NestedField

PROPERTY = "slackwater.written"
SCHEMA = Schema(NestedField(1, "b", LongType(), required=False))


def create(folder: Path, *, snapshot: bool = True) -> None:
    """Create an empty table: with one snapshot without files, as Spark does where it has a schema of rows, or none."""
    _save(folder, _catalog().create_table(_name(folder), SCHEMA, location=str(folder)))
    if snapshot:
        commit(folder, [])


def write_batch(folder: Path, stream: str, batch: int, *, epoch: int = 1, files: int = 1, rows: int = 1) -> list[str]:
    """Commit one batch with its marker and its property, as the sink would; the names of its files."""
    names = [data_file(folder, f"part-{batch}-{number} a.parquet", [batch] * rows) for number in range(files)]
    snapshot = commit(folder, names, {"wap.id": f"slackwater:{stream}:{epoch}:{batch}:0123"})
    mark(folder, stream, batch, snapshot, epoch=epoch)
    return names


def data_file(folder: Path, name: str, values: list[int]) -> str:
    """Write a file of rows; its path relative to the table."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.table({"b": pa.array(values, pa.int64())}), folder / "data" / name)
    return f"data/{name}"


def commit(folder: Path, names: list[str], summary: Mapping[str, str] | None = None) -> int:
    """Append files in one snapshot; its id."""
    table = _open(folder)
    if names:
        table.add_files([str(folder / name) for name in names], snapshot_properties=dict(summary or {}))
    else:
        with table.transaction() as transaction, transaction.update_snapshot(dict(summary or {})).fast_append():
            pass
    _save(folder, table)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def mark(folder: Path, stream: str, batch: int, snapshot: int | None, *, epoch: int = 1) -> None:
    """Set the property of the newest metadata, without a version of its own."""
    fields = metadata(folder)
    value = {"stream": stream, "epoch": epoch, "batch": batch, "snapshot": snapshot}
    fields["properties"][PROPERTY] = json.dumps(value)
    _path(folder, newest(folder)).write_text(json.dumps(fields))


def change(folder: Path, **changed: Any) -> None:
    """Commit a version with other fields."""
    fields = {**metadata(folder), **changed}
    _path(folder, newest(folder) + 1).write_text(json.dumps(fields))


def newest(folder: Path) -> int:
    """The newest version, 0 for none."""
    return max((int(path.name[1:].split(".")[0]) for path in (folder / "metadata").glob("v*.json")), default=0)


def metadata(folder: Path) -> dict[str, Any]:
    """The newest metadata."""
    fields: dict[str, Any] = json.loads(_path(folder, newest(folder)).read_text())
    return fields


def live_files(folder: Path) -> dict[str, bytes]:
    """The files of the current snapshot with their content; raises where one does not exist."""
    if not newest(folder):
        return {}
    table = StaticTable.from_metadata(str(_path(folder, newest(folder))))
    paths = [Path(unquote(urlsplit(task.file.file_path).path)) for task in table.scan().plan_files()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _path(folder: Path, version: int) -> Path:
    return folder / "metadata" / f"v{version}.metadata.json"


@cache
def _catalog() -> InMemoryCatalog:
    catalog = InMemoryCatalog("tests")
    catalog.create_namespace("db")
    return catalog


def _open(folder: Path) -> Table:
    """The table as its newest version has it, whoever wrote that."""
    if _catalog().table_exists(_name(folder)):
        _catalog().drop_table(_name(folder))
    return _catalog().register_table(_name(folder), str(_path(folder, newest(folder))))


def _name(folder: Path) -> tuple[str, str]:
    return "db", str(folder).replace("/", "_")


def _save(folder: Path, table: Table) -> None:
    shutil.copyfile(urlsplit(table.metadata_location).path, _path(folder, newest(folder) + 1))
