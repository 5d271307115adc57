"""A Delta table's log: versions and commits, from JSON entries only.

Format: Delta Lake's PROTOCOL.md, sections "Delta Log Entries", "Checkpoints" and "Actions".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from slackwater.core.errors import FormatError
from slackwater.storage.protocols import ReadStore

FOLDER = "_delta_log"
NOTE = "slackwater"
"""The key in ``commitInfo`` of Slackwater's note about its own commit, as a JSON string."""
KEPT = "kept"
"""The key in a note for files that the commit added again under other names, with rows that the table had before."""

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet|(\d{20})\.checkpoint\..*json")
_COPIED = ("numCopiedRows", "numTargetRowsCopied", "num_copied_rows", "num_target_rows_copied")
_TXN = b'{"txn"'


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file. ``rows`` is ``None`` if the commit does not show it.

    ``partition`` has values as in the log.
    """

    path: str
    size: int
    rows: int | None
    partition: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit. ``batches`` are its transactions: application id to batch.

    ``changes_table``: rows, schema, properties or protocol, unlike compaction. ``changes_rows``: it added or removed
    rows. ``copied`` are rows only copied from removed to added files.
    """

    version: int
    batches: Mapping[str, int] = field(default_factory=dict)
    adds: tuple[DataFile, ...] = ()
    removes: tuple[str, ...] = ()
    changes_table: bool = False
    changes_rows: bool = False
    copied: int = 0
    note: Mapping[str, object] = field(default_factory=dict)

    @property
    def rows(self) -> int | None:
        counts = [file.rows for file in self.adds]
        known = [count for count in counts if count is not None]
        return max(sum(known) - self.copied, 0) if len(known) == len(counts) else None

    @property
    def restores(self) -> int | None:
        version = self.note.get("restores")
        return version if isinstance(version, int) else None


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions with an entry, in order, and the newest checkpoint; -1 for none."""

    commits: tuple[int, ...]
    checkpoint: int

    @property
    def newest(self) -> int:
        return max(self.checkpoint, self.commits[-1] if self.commits else -1)

    def missing(self) -> tuple[int, ...]:
        """Missing entries without which the table cannot be read."""
        known = set(self.commits)
        return tuple(one for one in range(self.checkpoint + 1, self.newest + 1) if one not in known)


class DeltaLog:
    def __init__(self, store: ReadStore) -> None:
        self._store = store

    def versions(self) -> Versions:
        names = [entry.name for entry in self._store.list(FOLDER)]
        commits = sorted(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))
        checkpoints = (int(match[1] or match[2]) for name in names if (match := _CHECKPOINT.fullmatch(name)))
        return Versions(tuple(commits), max(checkpoints, default=-1))

    def batches(self, version: int) -> Mapping[str, int]:
        # Each line is one action and starts with its name, so that the lines of thousands of files need not be parsed.
        lines = [line for line in self._lines(version) if line.startswith(_TXN)]
        return _batches(version, (_action(version, line) for line in lines))

    def commit(self, version: int) -> Commit:
        actions = [_action(version, line) for line in self._lines(version)]
        if not actions:
            raise _malformed(version, "an empty file")
        try:
            return _commit(version, actions)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _malformed(version, repr(error)) from error

    def _lines(self, version: int) -> list[bytes]:
        return [line for line in self._store.read(entry_path(version)).split(b"\n") if line.strip()]


def kept_below(operation: object) -> str:
    """The folder below the table for files that a swap added again (``KEPT``)."""
    # No hidden folder, which VACUUM would never clean.
    return f"slackwater-{operation}"


def entry_path(version: int) -> str:
    return f"{FOLDER}/{version:020}.json"


def _action(version: int, line: bytes) -> dict[str, Any]:
    try:
        action = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _malformed(version, repr(line[:60])) from error
    if not isinstance(action, dict):
        raise _malformed(version, repr(line[:60]))
    return action


def _batches(version: int, actions: Iterator[dict[str, Any]]) -> Mapping[str, int]:
    try:
        return {action["txn"]["appId"]: int(action["txn"]["version"]) for action in actions if "txn" in action}
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(version, "a transaction without appId and version") from error


def _commit(version: int, actions: list[dict[str, Any]]) -> Commit:
    adds = [action["add"] for action in actions if "add" in action]
    removes = [action["remove"] for action in actions if "remove" in action]
    info: Mapping[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    note = json.loads(info[NOTE]) if isinstance(info.get(NOTE), str) else {}
    note = note if isinstance(note, dict) else {}
    changes_rows = any(file.get("dataChange", True) for file in (*adds, *removes))
    files = (_file(add) for add in adds)
    return Commit(
        version,
        _batches(version, iter(actions)),
        tuple(file for file in files if file.path not in note.get(KEPT, ())),
        tuple(unquote(remove["path"]) for remove in removes),
        changes_rows or any("metaData" in action or "protocol" in action for action in actions),
        changes_rows,
        _copied(info.get("operationMetrics")),
        note,
    )


def _file(add: Mapping[str, Any]) -> DataFile:
    return DataFile(unquote(add["path"]), int(add["size"]), _rows(add), add.get("partitionValues") or {})


def _copied(metrics: object) -> int:
    found = [str(metrics.get(name)) for name in _COPIED] if isinstance(metrics, Mapping) else []
    return sum(int(text) for text in found if text.isdecimal())


def _rows(add: Mapping[str, Any]) -> int | None:
    # With a deletion vector some of the file's rows do not count.
    statistics = add.get("stats")
    rows = json.loads(statistics).get("numRecords") if statistics and not add.get("deletionVector") else None
    return rows if isinstance(rows, int) else None


def _malformed(version: int, found: str) -> FormatError:
    return FormatError(
        "delta-log",
        "An entry of the log of a Delta table is malformed",
        where=entry_path(version),
        expected="one JSON action in each line",
        found=found,
    )
