"""A second line of metadata of a table, in a folder below it, that Iceberg's own streaming sink fills as a table.

It starts without snapshots, with the columns, partitions and properties of the real one. The sink finds only the epochs
that it has written there. One version of the real table then takes over the snapshots, with the files where they
are: their numbers follow those of the real table, which nobody may have changed meanwhile.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from slackwater.sinks.common.swapping import unsupported
from slackwater.sinks.iceberg.metadata import MAIN, Change, Mark, Metadata
from slackwater.sinks.iceberg.swapping import Branches
from slackwater.sinks.iceberg.versions import FOLDER, HINT, Version, Versions
from slackwater.storage.protocols import WriteStore

FIRST = Version(1, ".metadata.json")
_OF_FILES = ("schemas", "current-schema-id", "partition-specs", "default-spec-id", "format-version")
"""What must be the same for the files of one table to be read in another."""
_SEQUENCE = "last-sequence-number"
_STARTED = "slackwater.started-at"
"""The property of the second line with the sequence number of the table when it was made."""
_VERSION_MAX = 2
"""In later versions of the format a snapshot numbers its rows."""


def folder_of(operation: str) -> str:
    """The folder of an operation below the table. Not hidden: it stays, with the files that were put in place."""
    return f"slackwater-{operation}"


def check_format(metadata: Metadata) -> None:
    """Raises Refused for a table whose snapshots cannot be taken over."""
    version = int(metadata.fields["format-version"])
    if version > _VERSION_MAX:
        raise unsupported(metadata.location, f"a table of format version {_VERSION_MAX} or lower", f"{version}")


def start(store: WriteStore, metadata: Metadata, operation: str) -> None:
    """Write the first version, in the folder ``store``."""
    fields: dict[str, Any] = dict(metadata.fields)
    for name in ("statistics", "partition-statistics", "snapshots", "snapshot-log", "metadata-log"):
        fields[name] = []
    fields |= {
        "location": f"{metadata.location.rstrip('/')}/{folder_of(operation)}",
        "table-uuid": str(uuid.uuid4()),
        "current-snapshot-id": -1,
        "refs": {},
        "properties": {**metadata.properties, _STARTED: str(fields.get(_SEQUENCE, 0))},
    }
    store.write(FIRST.path, json.dumps(fields).encode())
    store.write(f"{FOLDER}/{HINT}", b"1")


def take_over(metadata: Metadata, beside: Metadata, branches: Branches, replaced: Mark) -> Change:
    """Make the newest snapshot of the second line the current one of the table; ``replaced`` is what it was."""
    moved = {MAIN: beside.current, branches.replaced: replaced.snapshot}
    return Change(moved, {branches.replaced: replaced}, snapshots=_unknown(metadata, beside))


def give_back(branches: Branches, replaced: Mark) -> Change:
    """Undo ``take_over``. The snapshots stay in the table until ``expire_snapshots`` deletes them."""
    return Change({MAIN: replaced.snapshot, branches.replaced: None}, {branches.replaced: None})


def check_alike(metadata: Metadata, beside: Metadata) -> None:
    """Raises Refused where the table could not take over the snapshots."""
    for name in _OF_FILES:
        if _bare(metadata.fields.get(name)) != _bare(beside.fields.get(name)):
            raise unsupported(beside.location, f"{name} of the table", f"other {name}")
    now, then = str(metadata.fields.get(_SEQUENCE, 0)), beside.properties.get(_STARTED)
    # After a swap that was undone the table has the snapshots already.
    if now != then and _unknown(metadata, beside):
        raise unsupported(metadata.location, f"{_SEQUENCE} {then}, as when the staged table was created", now)


def _bare(value: Any) -> Any:
    """Without what Iceberg leaves out where it is empty, and pyiceberg writes."""
    if isinstance(value, Mapping):
        bare = {key: _bare(each) for key, each in value.items()}
        return {key: each for key, each in bare.items() if each not in (None, [], {}) or key == "fields"}
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _unknown(metadata: Metadata, beside: Metadata) -> tuple[Mapping[str, Any], ...]:
    """The snapshots of the second line that the table does not have."""
    found = beside.fields.get("snapshots") or ()
    return tuple(one for one in found if int(one["snapshot-id"]) not in metadata.snapshots)


def remove(store: WriteStore, metadata: Metadata | None) -> None:
    """Remove the second line; its files only where the table has never taken over its snapshots."""
    store.delete(f"{FOLDER}/{HINT}")
    versions = Versions(store)
    while (newest := versions.newest()) is not None:
        store.delete(newest.path)
    folder = store.location.rstrip("/").rpartition("/")[2]
    if metadata is None or not any(f"/{folder}/" in one.manifest_list for one in metadata.snapshots.values()):
        store.delete_tree()


def newest_of(store: WriteStore) -> Metadata | None:
    """What the second line is now; ``None`` where there is none."""
    versions = Versions(store)
    newest = versions.newest()
    return None if newest is None else versions.read(newest)
