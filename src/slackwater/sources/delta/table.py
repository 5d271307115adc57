"""The id of a Delta table, read from its log alone: a library would load the list of all its files.

Format: Delta Lake's PROTOCOL.md, sections "Change Metadata" and "Checkpoints".
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.core.errors import EnvironmentMissing
from slackwater.storage.protocols import ReadStore

_ENTRY = re.compile(r"(\d{20})\.(?:json|(checkpoint)\..*(?:parquet|json))")
_ACTION = b'{"metaData"'


def table_id(store: ReadStore, names: Iterable[str]) -> str:
    """The id in the newest metadata; ``names`` are the files of the log, whose folder ``store`` is.

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
    except (ValueError, LookupError, TypeError, pa.ArrowException) as error:
        raise _unreadable(store, str(error)) from error
    raise _unreadable(store, "its log has no metadata")


def _metadata(store: ReadStore, name: str) -> Sequence[Any]:
    if not name.endswith(".parquet"):
        return [json.loads(line)["metaData"] for line in store.read(name).splitlines() if line.startswith(_ACTION)]
    with pq.ParquetFile(store.local_path(name) or io.BytesIO(store.read(name))) as file:
        rows = file.read(columns=["metaData.id"])
    return [row for row in rows["metaData"].to_pylist() if row is not None and row["id"] is not None]


def _unreadable(store: ReadStore, reason: str) -> EnvironmentMissing:
    return EnvironmentMissing(
        "store-unreachable",
        f"The Delta table cannot be read: {reason}",
        where=store.location,
        hint="read it with Spark to see whether it is damaged",
    )
