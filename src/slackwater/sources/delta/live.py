"""Finds a Delta table's positions and the rest of its log, and checks that it is the table that was read.

A query's positions are asked through its session. The next version is looked up without a library, which would load the
list of all files.
"""

import io
import json
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from slackwater.core.errors import EnvironmentMissing
from slackwater.core.facts import Unserved
from slackwater.core.program import SourceShape
from slackwater.core.targets import Target
from slackwater.sources.common.contract import (
    BY_BATCH,
    ENDS,
    Asked,
    EmptyBase,
    Position,
    SourceSeen,
    SparkSource,
    decoded,
    unsupported,
)
from slackwater.sources.common.source import LiveSource
from slackwater.sources.delta import SOURCE as DELTA
from slackwater.storage.open import is_uri, open_read_store
from slackwater.storage.protocols import ReadStore

_LOG = "_delta_log"
_ENTRY = re.compile(r"(\d{20})\.(?:json|(checkpoint)\..*(?:parquet|json))")
"""A commit, or a part of a checkpoint of the log (Delta Lake's PROTOCOL.md, "Delta Log Entries")."""
_ACTION = b'{"metaData"'
_COMMIT = re.compile(r"(\d{20})\.json")


class DeltaLive(LiveSource):
    """Reads the log of a table by its path."""

    def position(self, source: SourceSeen, target: Target, given: str | None) -> Position:
        """The whole table now, its next version, or a given offset.

        Raises Refused and UsageError. Without a start option Delta itself reads the whole table first.
        """
        match target.kind:
            case "earliest" if any(key.lower() in DELTA.start_options for key in source.spark.options):
                raise unsupported(
                    source.where,
                    "without a position the program starts it at a version, and not with the whole table",
                    hint=f"remove {' or '.join(sorted(DELTA.start_options))} from the program before",
                )
            case "earliest" | "latest":
                table, newest = _newest(source.spark)
                whole = target.kind == "earliest"
                after = DELTA.at(table, newest if whole else newest + 1, whole=whole)
            case "offsets" if given is not None:
                DELTA.check_offset(source.name, given, given)
                after = given
            case _:
                raise unsupported(
                    source.where,
                    "of a Delta table only the whole table and its newest version are known",
                    hint=f"{ENDS}; {BY_BATCH}",
                )
        return source.at(EmptyBase(after), f"{DELTA.describe(source.current)} -> {DELTA.describe(after)}")

    def unserved(self, shape: SourceShape, asked: Asked, source: SparkSource | None = None) -> Sequence[Unserved]:
        value, location = decoded(asked.start), shape.location
        if not isinstance(value, dict) or not DELTA.owns(value, {}):
            return ()
        if not (location.startswith("/") or is_uri(location)):
            raise EnvironmentMissing(
                "store-unreachable",
                "The source is a table of a catalog, whose path is not recorded",
                where=location,
                hint="compare the table's id and its oldest version in the catalog",
            )
        log = open_read_store(f"{location}/{_LOG}")
        names = [entry.name for entry in log.list()]
        versions = sorted(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))
        read, oldest = str(value["reservoirId"]), value["reservoirVersion"]
        table = _table_id(log, names) if names else None
        if table != read:
            found = f"table {table}" if names else "no Delta table"
            return (Unserved("table-replaced", location, f"table {read}", found),)
        if versions and oldest < versions[0]:
            found = f"version {versions[0]} as the oldest"
            return (Unserved("versions-cleaned", location, f"version {oldest}", found, versions[0] - oldest),)
        return ()


def _newest(source: SparkSource) -> tuple[str, int]:
    path = next((value for key, value in source.options.items() if key.lower() == "path"), None)
    if path is None:
        raise unsupported(source.where, "the table is one of a catalog, whose path is not known", hint=BY_BATCH)
    table = source.jvm.io.delta.tables.DeltaTable.forPath(path)
    detail, newest = table.detail().first(), table.history(1).first()
    return str(detail.getAs("id")), int(newest.getAs("version"))


def _table_id(store: ReadStore, names: Iterable[str]) -> str:
    """The id in the newest metadata; ``names`` are files in the log folder ``store``.

    Raises EnvironmentMissing (``store-unreachable``).
    """
    entries = [(match[1], match[2] or "", name) for name in names if (match := _ENTRY.fullmatch(name))]
    checkpoint = max((version for version, kind, _ in entries if kind), default="")
    # After all commits that it does not have: each part of the newest checkpoint, one of which has the metadata.
    read = [one for one in entries if (one[0] == checkpoint if one[1] else one[0] > checkpoint)]
    try:
        for _, _, name in sorted(read, reverse=True):
            for action in reversed(_metadata(store, name)):
                return str(action["id"])
    except (ValueError, LookupError, TypeError, RuntimeError) as error:
        raise _unreadable(store, str(error)) from error
    raise _unreadable(store, "its log has no metadata")


def _metadata(store: ReadStore, name: str) -> Sequence[Any]:
    if not name.endswith(".parquet"):
        return [json.loads(line)["metaData"] for line in store.read(name).splitlines() if line.startswith(_ACTION)]
    parquet = import_module("pyarrow.parquet")
    with parquet.ParquetFile(store.local_path(name) or io.BytesIO(store.read(name))) as file:
        rows = file.read(columns=["metaData.id"])
    return [row for row in rows["metaData"].to_pylist() if row is not None and row["id"] is not None]


def _unreadable(store: ReadStore, reason: str) -> EnvironmentMissing:
    return EnvironmentMissing(
        "store-unreachable",
        f"The Delta table cannot be read: {reason}",
        where=store.location,
        hint="read it with Spark to see whether it is damaged",
    )


LIVE = DeltaLive(DELTA)
