"""What a version of a Delta table consists of: protocol, metadata and files, as the log has them.

From the newest checkpoint that is not newer, and the entries after it (PROTOCOL.md, sections "Action Reconciliation"
and "Checkpoints"). Tables with features, and so with checkpoints of version 2, are not read.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from slackwater.errors import Refused
from slackwater.sinks.delta.log import FOLDER, DeltaLog, entry_path
from slackwater.storage.protocols import ReadStore

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
_KINDS = ("protocol", "metaData", "add", "remove")

Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Contents:
    """One version. ``files`` are the actions that added them, by path as it is written there."""

    version: int
    protocol: Action
    metadata: Action
    files: Mapping[str, Action]

    def setting(self, name: str) -> str | None:
        """A property of the table."""
        value: str | None = self.metadata.get("configuration", {}).get(name)
        return value


def contents_of(store: ReadStore, version: int) -> Contents:
    """The contents of a version. Raises Refused (``delta-log-cleaned``) where the log no longer has all of it."""
    state: dict[str, Any] = {"protocol": None, "metaData": None}
    files: dict[str, Action] = {}
    for action in _actions(store, version):
        for kind in _KINDS:
            value = action.get(kind)
            if value is None:
                continue
            if kind == "add":
                files[value["path"]] = value
            elif kind == "remove":
                files.pop(value["path"], None)
            else:
                state[kind] = value
    if state["protocol"] is None or state["metaData"] is None:
        raise _cleaned(version)
    return Contents(version, state["protocol"], state["metaData"], files)


def newest_contents(store: ReadStore) -> Contents:
    """The contents of the newest version. Raises as ``contents_of``."""
    return contents_of(store, DeltaLog(store).versions().newest)


def _actions(store: ReadStore, version: int) -> Iterator[Action]:
    checkpoints = _checkpoints(store, version)
    first = max(checkpoints, default=-1)
    for name in checkpoints.get(first, ()):
        yield from _checkpointed(store.read(f"{FOLDER}/{name}"))
    for number in range(first + 1, version + 1):
        try:
            lines = store.read(entry_path(number)).split(b"\n")
        except FileNotFoundError as error:
            raise _cleaned(version) from error
        yield from (json.loads(line) for line in lines if line.strip())


def _checkpoints(store: ReadStore, version: int) -> dict[int, list[str]]:
    """The checkpoints up to a version, with the names of their parts; one that lacks a part is left out."""
    found: dict[tuple[int, int], list[str]] = {}
    for entry in store.list(FOLDER):
        match = _CHECKPOINT.fullmatch(entry.name)
        if match is not None and int(match[1]) <= version:
            found.setdefault((int(match[1]), int(match[2] or 1)), []).append(entry.name)
    return {number: names for (number, parts), names in found.items() if len(names) == parts}


def _checkpointed(data: bytes) -> Iterator[Action]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - heavy; most reads do without

    file = pq.ParquetFile(io.BytesIO(data))
    known = [name for name in _KINDS if name in file.schema_arrow.names and name != "remove"]
    for batch in file.iter_batches(columns=known):
        for row in batch.to_pylist():
            yield {kind: _plain(value) for kind, value in row.items() if value is not None}


def _plain(value: Any) -> Any:
    """A value of a checkpoint as it is written in an entry: maps as objects, without what is null or parsed."""
    if isinstance(value, list) and all(isinstance(each, tuple) for each in value):
        return dict(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items() if each is not None and not key.endswith("_parsed")}
    return value


def removes(files: Iterable[Action], now_ms: int) -> Iterator[Action]:
    """The actions that remove files."""
    for file in files:
        yield {
            "remove": {
                "path": file["path"],
                "deletionTimestamp": now_ms,
                "dataChange": True,
                "extendedFileMetadata": True,
                "partitionValues": file.get("partitionValues", {}),
                "size": file["size"],
            }
        }


def _cleaned(version: int) -> Refused:
    return Refused(
        "delta-log-cleaned",
        "The log of the Delta table no longer has all of one of its versions",
        where=f"version {version}",
        hint="the table's property delta.logRetentionDuration decides how long commits are kept",
    )
