"""Iceberg tables in directories, written and read by pyiceberg without the code under test.

pyiceberg numbers metadata by other names than a Hadoop catalog: each commit is copied to ``vN.metadata.json``.
"""

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


def create(folder: Path, *, snapshot: bool = True, version: int = 2) -> None:
    """Create an empty table: with one snapshot without files, as Spark does where it has a schema of rows, or none."""
    properties = {"format-version": str(version)}
    _save(folder, _catalog().create_table(_name(folder), SCHEMA, location=str(folder), properties=properties))
    if snapshot:
        commit(folder, [])


def write_batch(
    folder: Path, stream: str, batch: int, *, epoch: int = 1, files: int = 1, rows: int = 1, branch: str = "main"
) -> list[str]:
    """Commit one batch with its marker and its property, as the sink would; the names of its files."""
    prefix = "part" if branch == "main" else "staged"
    names = [data_file(folder, f"{prefix}-{batch}-{number} a.parquet", [batch] * rows) for number in range(files)]
    snapshot = commit(folder, names, {"wap.id": f"slackwater:{stream}:{epoch}:{batch}:0123"}, branch)
    mark(folder, stream, batch, snapshot, epoch=epoch, branch=branch)
    return names


def data_file(folder: Path, name: str, values: list[int]) -> str:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.table({"b": pa.array(values, pa.int64())}), folder / "data" / name)
    return f"data/{name}"


def commit(folder: Path, names: list[str], summary: Mapping[str, str] | None = None, branch: str = "main") -> int:
    """Append files in one snapshot; its id."""
    # The table as its newest version has it, whoever wrote that.
    if _catalog().table_exists(_name(folder)):
        _catalog().drop_table(_name(folder))
    table = _catalog().register_table(_name(folder), str(_path(folder, newest(folder))))
    if names:
        paths = [str(folder / name) for name in names]
        table.add_files(paths, snapshot_properties=dict(summary or {}), branch=branch)
    else:
        with table.transaction() as transaction:
            update = transaction.update_snapshot(dict(summary or {}), branch=branch)
            with update.fast_append():
                pass
    _save(folder, table)
    snapshot = table.snapshot_by_name(branch)
    assert snapshot is not None
    return snapshot.snapshot_id


def commit_epoch(folder: Path, query: str, epoch: int, names: list[str]) -> int:
    """Append files as Iceberg's own streaming sink does, also where there are none; the id of the snapshot."""
    return commit(folder, names, {"spark.sql.streaming.queryId": query, "spark.sql.streaming.epochId": str(epoch)})


def epoch_of(folder: Path, query: str) -> int | None:
    """The newest epoch of a query that this sink finds: among the ancestors of the current snapshot."""
    fields = metadata(folder)
    snapshots = {one["snapshot-id"]: one for one in fields.get("snapshots", ())}
    current = snapshots.get(fields.get("current-snapshot-id"))
    while current is not None:
        if current["summary"].get("spark.sql.streaming.queryId") == query:
            return int(current["summary"]["spark.sql.streaming.epochId"])
        current = snapshots.get(current.get("parent-snapshot-id"))
    return None


def mark(folder: Path, stream: str, batch: int, snapshot: int | None, *, epoch: int = 1, branch: str = "main") -> None:
    fields = metadata(folder)
    value = {"stream": stream, "epoch": epoch, "batch": batch, "snapshot": snapshot}
    fields["properties"][PROPERTY if branch == "main" else f"{PROPERTY}.{branch}"] = json.dumps(value)
    _path(folder, newest(folder)).write_text(json.dumps(fields))


def change(folder: Path, **changed: Any) -> None:
    """Commit a version with other fields."""
    fields = {**metadata(folder), **changed}
    _path(folder, newest(folder) + 1).write_text(json.dumps(fields))


def newest(folder: Path) -> int:
    return max((int(path.name[1:].split(".")[0]) for path in (folder / "metadata").glob("v*.json")), default=0)


def metadata(folder: Path) -> dict[str, Any]:
    """The newest metadata."""
    fields: dict[str, Any] = json.loads(_path(folder, newest(folder)).read_text())
    return fields


def live_files(folder: Path, branch: str = "main") -> dict[str, bytes]:
    """The files of the newest snapshot of a branch with their content; raises where one does not exist."""
    if not newest(folder):
        return {}
    table = StaticTable.from_metadata(str(_path(folder, newest(folder))))
    snapshot = table.snapshot_by_name(branch)
    tasks = table.scan(snapshot_id=snapshot.snapshot_id).plan_files() if snapshot is not None else ()
    paths = [Path(unquote(urlsplit(task.file.file_path).path)) for task in tasks]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _path(folder: Path, version: int) -> Path:
    return folder / "metadata" / f"v{version}.metadata.json"


@cache
def _catalog() -> InMemoryCatalog:
    catalog = InMemoryCatalog("tests")
    catalog.create_namespace("db")
    return catalog


def _name(folder: Path) -> tuple[str, str]:
    return "db", str(folder).replace("/", "_")


def _save(folder: Path, table: Table) -> None:
    shutil.copyfile(urlsplit(table.metadata_location).path, _path(folder, newest(folder) + 1))
