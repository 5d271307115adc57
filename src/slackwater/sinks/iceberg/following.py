"""The fields of the version that follows another one: other branches and properties, all else as it was.

Names of fields: Apache Iceberg's table specification, section "Table Metadata Fields".
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slackwater.sinks.iceberg.metadata import MAIN, Mark, Metadata, property_of
from slackwater.sinks.iceberg.versions import Version

KEPT_VERSIONS = "write.metadata.previous-versions-max"
KEPT_VERSIONS_DEFAULT = 100
SEQUENCE_NUMBERS = 2
"""From this version of the format on snapshots are numbered."""
NULL_FOR_NONE = 3
"""From this version of the format on a table without snapshots has null as its current one, before that -1."""


@dataclass(frozen=True, slots=True)
class Change:
    """The newest snapshot of each branch (``None``: without any), and the mark of each (``None``: removed).

    A branch other than the main one that has no snapshot does not exist. ``snapshots`` are added.
    """

    branches: Mapping[str, int | None]
    marks: Mapping[str, Mark | None]
    snapshots: tuple[Mapping[str, Any], ...] = field(default=())


def move(branch: str, mark: Mark) -> Change:
    """A branch at the snapshot of the mark."""
    return Change({branch: mark.snapshot}, {branch: mark})


def following(metadata: Metadata, base: Version, change: Change) -> dict[str, Any]:
    """The fields of the version after ``base``, which ``metadata`` was read from."""
    fields = copy.deepcopy(metadata.fields)
    before_ms = int(fields["last-updated-ms"])
    now_ms = max(time.time_ns() // 1_000_000, before_ms)
    kept = int(metadata.properties.get(KEPT_VERSIONS, KEPT_VERSIONS_DEFAULT))
    entry = {"timestamp-ms": before_ms, "metadata-file": f"{metadata.location.rstrip('/')}/{base.path}"}
    fields["metadata-log"] = [*(fields.get("metadata-log") or ()), entry][-kept:]
    fields["last-updated-ms"] = now_ms
    fields["properties"] = _properties(metadata, change)
    for snapshot in change.snapshots:
        _add(fields, snapshot, now_ms)
    references = fields.setdefault("refs", {})
    for branch, snapshot_id in change.branches.items():
        if branch == MAIN:
            _set_current(fields, snapshot_id, now_ms)
        if snapshot_id is None:
            references.pop(branch, None)
        else:
            references[branch] = {**references.get(branch, {"type": "branch"}), "snapshot-id": snapshot_id}
    return fields


def _properties(metadata: Metadata, change: Change) -> dict[str, str]:
    found = dict(metadata.properties)
    for branch, mark in change.marks.items():
        if mark is None:
            found.pop(property_of(branch), None)
        else:
            found[property_of(branch)] = mark.render()
    return found


def _add(fields: dict[str, Any], snapshot: Mapping[str, Any], now_ms: int) -> None:
    added = {**snapshot, "timestamp-ms": now_ms, "schema-id": fields.get("current-schema-id", 0)}
    if fields["format-version"] >= SEQUENCE_NUMBERS:
        fields["last-sequence-number"] = added["sequence-number"] = next_sequence_number(fields)
    if "next-row-id" in fields:
        added |= {"first-row-id": fields["next-row-id"], "added-rows": 0}
    fields["snapshots"] = [*(fields.get("snapshots") or ()), added]


def next_sequence_number(fields: Mapping[str, Any]) -> int:
    """The number of the next snapshot."""
    return int(fields.get("last-sequence-number", 0)) + 1


def _set_current(fields: dict[str, Any], snapshot: int | None, now_ms: int) -> None:
    if snapshot is None:
        fields["snapshot-log"] = []
        fields["current-snapshot-id"] = None if fields["format-version"] >= NULL_FOR_NONE else -1
    elif snapshot != fields.get("current-snapshot-id"):
        fields["current-snapshot-id"] = snapshot
        history = fields.get("snapshot-log") or ()
        fields["snapshot-log"] = [*history, {"timestamp-ms": now_ms, "snapshot-id": snapshot}]
