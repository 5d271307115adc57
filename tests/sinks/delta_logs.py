"""Delta tables written and read without the code under test and without a library: the log as PROTOCOL.md has it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

LOG = "_delta_log"
ID = "11111111-2222-3333-4444-555555555555"
SCHEMA = '{"type":"struct","fields":[{"name":"b","type":"long","nullable":true,"metadata":{}}]}'
TABLE: tuple[dict[str, Any], ...] = (
    {"commitInfo": {"timestamp": 0, "operation": "WRITE", "operationParameters": {}}},
    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
    {
        "metaData": {
            "id": ID,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": SCHEMA,
            "partitionColumns": [],
            "configuration": {},
            "createdTime": 0,
        }
    },
)


def commit(table: Path, actions: Sequence[Mapping[str, Any]]) -> int:
    """Write the next version; its number."""
    version = newest(table) + 1
    (table / LOG).mkdir(parents=True, exist_ok=True)
    (table / LOG / f"{version:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return version


def write_batch(
    table: Path,
    app: str,
    batch: int,
    *,
    replaces: Sequence[str] = (),
    files: int = 1,
    rows: int | None = 1,
    prefix: str = "part",
) -> list[str]:
    """Commit one batch with its files, as Spark's writer would; their names."""
    info = {"commitInfo": {"timestamp": batch, "operation": "WRITE", "operationParameters": {}}}
    names = [f"{prefix}-{batch}-{number} a.parquet" for number in range(files)]
    transaction = {"txn": {"appId": app, "version": batch, "lastUpdated": batch}}
    adds = [add(table, name, f"rows of batch {batch}\n".encode(), rows) for name in names]
    commit(table, [info, transaction, *adds, *(remove(table, name) for name in replaces)])
    return names


def add(table: Path, name: str, data: bytes, rows: int | None = 1, *, data_change: bool = True) -> dict[str, Any]:
    """Write a file; the action that adds it."""
    table.mkdir(parents=True, exist_ok=True)
    (table / name).write_bytes(data)
    fields = {"path": _encoded(name), "partitionValues": {}, "size": len(data), "modificationTime": 0}
    statistics = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    return {"add": {**fields, "dataChange": data_change, **statistics}}


def remove(table: Path, name: str, *, data_change: bool = True) -> dict[str, Any]:
    size = (table / name).stat().st_size
    fields = {"path": _encoded(name), "deletionTimestamp": 0, "dataChange": data_change, "extendedFileMetadata": True}
    return {"remove": {**fields, "partitionValues": {}, "size": size}}


def newest(table: Path) -> int:
    return max((int(path.stem) for path in (table / LOG).glob("*.json")), default=-1)


def live_files(table: Path) -> Mapping[str, bytes]:
    """The files of the newest version with their content; raises where one does not exist."""
    live: set[str] = set()
    for action in _actions(table):
        if "remove" in action:
            live.discard(_decoded(action["remove"]["path"]))
        if "add" in action:
            live.add(_decoded(action["add"]["path"]))
    return {name: (table / name).read_bytes() for name in live}


def transactions(table: Path) -> Mapping[str, int]:
    return {action["txn"]["appId"]: action["txn"]["version"] for action in _actions(table) if "txn" in action}


def _actions(table: Path) -> list[dict[str, Any]]:
    entries = sorted((table / LOG).glob("*.json"))
    return [json.loads(line) for entry in entries for line in entry.read_text().splitlines()]


def _encoded(name: str) -> str:
    return name.replace(" ", "%20")


def _decoded(path: str) -> str:
    return unquote(path)
