"""The metadata of an Iceberg table: its snapshots, and which of them wrote which batch of a stream.

Format: Apache Iceberg's table specification, section "Table Metadata Fields". The newest batch is found in the
ancestors of the current snapshot and not in a table property alone: whoever rolls the table back takes batches out of
it, and no property changes with that.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from slackwater.core.errors import FormatError, SinkUnreadable

PROPERTY = "slackwater.written"
"""The table property with the newest batch as of one snapshot, as JSON: it outlives the snapshots, which expire."""
MAIN = "main"
"""The branch that readers of the table see. Another has its own property: see ``property_of``."""
MARKER = "wap.id"
"""The key in a snapshot's summary that names the batch. Iceberg sets it for every kind of write, MERGE included."""
_PREFIX = "slackwater"
_QUERY, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"
"""The keys in a snapshot's summary under which Iceberg's own streaming sink records the query and its batch."""


@dataclass(frozen=True, slots=True)
class Mark:
    """As of ``snapshot`` (``None``: before the first one) ``batch`` is the newest of ``stream``.

    ``epoch`` is the fence number of the newest run: one with a lower number may not write.
    """

    stream: str
    epoch: int
    batch: int
    snapshot: int | None

    def render(self) -> str:
        """The value of the table property."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot of the table."""

    id: int
    parent: int | None
    manifest_list: str
    summary: Mapping[str, str]

    def batch_of(self, stream: str) -> int | None:
        """The batch of ``stream`` that it wrote, ``None`` for a snapshot of another writer.

        Where Iceberg's own streaming sink wrote it, ``stream`` is the id of the query.
        """
        epoch = self.summary.get(_EPOCH, "")
        if self.summary.get(_QUERY) == stream and epoch.isdecimal():
            return int(epoch)
        prefix, _, rest = self.summary.get(MARKER, "").partition(":")
        parts = rest.rsplit(":", 3)
        if prefix != _PREFIX or len(parts) != 4 or parts[0] != stream or not parts[2].isdecimal():  # noqa: PLR2004 - as in marker
            return None
        return int(parts[2])

    @property
    def changes_rows(self) -> bool:
        """Whether the table has other rows since: compaction only replaces files."""
        return self.summary.get("operation") != "replace"


@dataclass(frozen=True, slots=True)
class Metadata:
    """One version of the table's metadata, as readers of ``branch`` see it: ``current`` is the newest snapshot there.

    ``marks`` are those of all branches, by their property; ``log`` names the files of older versions, the newest first.
    ``file`` is the file that it was read from, relative to the table or as its catalog names it.
    """

    location: str
    current: int | None
    snapshots: Mapping[int, Snapshot]
    branches: Mapping[str, int]
    marks: Mapping[str, Mark]
    properties: Mapping[str, str]
    log: tuple[str, ...]
    fields: Mapping[str, Any]
    file: str = ""
    branch: str = MAIN

    @property
    def mark(self) -> Mark | None:
        """The newest batch of the branch, as the sink has recorded it."""
        return self.marks.get(property_of(self.branch))

    def on(self, branch: str) -> Metadata:
        """The same version as readers of another branch see it."""
        return self if branch == self.branch else replace(self, branch=branch, current=self.branches.get(branch))

    def staged(self, marker: str) -> Snapshot | None:
        """The snapshot with this marker."""
        return next((one for one in self.snapshots.values() if one.summary.get(MARKER) == marker), None)


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit changes: the newest snapshot of each branch (``None``: without any), and the mark of each.

    A branch other than the main one that has no snapshot does not exist; a mark that is ``None`` is removed. ``empty``
    is the id of a snapshot without files that is added, ``snapshots`` are others, as JSON. ``properties`` are set.
    """

    branches: Mapping[str, int | None] = field(default_factory=dict)
    marks: Mapping[str, Mark | None] = field(default_factory=dict)
    empty: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    snapshots: tuple[Mapping[str, Any], ...] = ()


def move(branch: str, mark: Mark) -> Change:
    """A branch at the snapshot of the mark."""
    return Change({branch: mark.snapshot}, {branch: mark})


def property_of(branch: str) -> str:
    """The table property with the mark of a branch."""
    return PROPERTY if branch == MAIN else f"{PROPERTY}.{branch}"


def marker(stream: str, epoch: int, batch: int, attempt: str) -> str:
    """What a snapshot's summary says about the batch that it holds; ``attempt`` makes it unique."""
    return f"{_PREFIX}:{stream}:{epoch}:{batch}:{attempt}"


def parse(data: str | bytes, file: str = "") -> Metadata:
    """One version, as the JSON in ``file``, which may be compressed. Raises FormatError (``iceberg-metadata``)."""
    try:
        fields = json.loads(gzip.decompress(data) if isinstance(data, bytes) and ".gz" in file else data)
    except (ValueError, RecursionError, OSError, EOFError) as error:
        raise _malformed(file, error) from error
    return metadata_of(fields, file)


def metadata_of(fields: Mapping[str, Any], file: str) -> Metadata:
    """One version by its fields. Raises FormatError (``iceberg-metadata``)."""
    try:
        return _metadata(fields, file)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _malformed(file, error) from error


def _malformed(file: str, error: Exception) -> FormatError:
    return FormatError(
        "iceberg-metadata",
        "The metadata of an Iceberg table is malformed",
        where=file or None,
        expected="table metadata of the Iceberg specification",
        found=repr(error),
    )


def _metadata(fields: Mapping[str, Any], file: str) -> Metadata:
    snapshots = [_snapshot(one) for one in fields.get("snapshots") or ()]
    properties = dict(fields.get("properties") or {})
    # Iceberg's Java library writes -1 for a table without snapshots up to version 2 of the format.
    current = fields.get("current-snapshot-id")
    current = None if current in {None, -1} else int(current)
    branches = {name: int(one["snapshot-id"]) for name, one in (fields.get("refs") or {}).items()}
    return Metadata(
        str(fields["location"]),
        current,
        {one.id: one for one in snapshots},
        # Writers that know no branches record the current snapshot alone.
        branches if current is None else {MAIN: current, **branches},
        {key: _mark(json.loads(value)) for key, value in properties.items() if _is_property(key)},
        properties,
        tuple(str(entry["metadata-file"]) for entry in reversed(fields.get("metadata-log") or ())),
        fields,
        file,
    )


def lineage(newest: Metadata, older: Iterator[Metadata]) -> Iterator[tuple[int | None, Snapshot | None]]:
    """The current snapshot and its ancestors, ended by ``(None, None)``.

    One that expired is looked up in ``older`` metadata; one that is not there either comes without a snapshot, and
    nothing comes after it.
    """
    known, current = dict(newest.snapshots), newest.current
    while current is not None:
        while current not in known and (past := next(older, None)) is not None:
            known = {**past.snapshots, **known}
        found = known.get(current)
        yield current, found
        if found is None:
            return
        current = found.parent
    yield None, None


def epochs(newest: Metadata, older: Iterator[Metadata], query: str) -> dict[str, int]:
    """The newest batch by query id of those that Iceberg's own sink wrote, as far back as snapshots are known.

    Of ``query`` also the one that a cut has recorded: where it has left no batch, no snapshot shows one.
    """
    found: dict[str, int] = {}
    mark = newest.mark if newest.mark is not None and newest.mark.stream == query else None
    for identifier, snapshot in lineage(newest, older):
        if mark is not None and mark.snapshot == identifier:
            found.setdefault(query, mark.batch)
        summary = snapshot.summary if snapshot is not None else {}
        writer, epoch = summary.get(_QUERY), summary.get(_EPOCH, "")
        if writer is not None and epoch.isdecimal():
            found.setdefault(writer, int(epoch))
    return found


def written(newest: Metadata, older: Iterator[Metadata], stream: str) -> int:
    """The newest batch of ``stream`` in the table, -1 for none.

    Raises SinkUnreadable (``iceberg-history``) where that is unknown: the snapshots that show it have expired.
    """
    mark = newest.mark if newest.mark is not None and newest.mark.stream == stream else None
    for identifier, snapshot in lineage(newest, older):
        # The id is enough: the snapshot itself may have expired.
        if mark is not None and mark.snapshot == identifier:
            return mark.batch
        if identifier is None:
            break
        if snapshot is None:
            raise SinkUnreadable(
                "iceberg-history",
                "Which batch the Iceberg table has is unknown: the snapshots that show it have expired",
                where=newest.location,
                expected=f"snapshot {identifier}, or the table property {PROPERTY} as of a newer one",
                found="neither",
                hint="find out whether the table was rolled back (its history in Spark: SELECT * FROM TABLE.history), "
                "and restore its metadata from a backup",
            )
        batch = snapshot.batch_of(stream)
        if batch is not None:
            return batch
    return -1


def _is_property(key: str) -> bool:
    return key == PROPERTY or key.startswith(f"{PROPERTY}.")


def _mark(fields: Mapping[str, Any]) -> Mark:
    snapshot = fields["snapshot"]
    found = Mark(str(fields["stream"]), int(fields["epoch"]), int(fields["batch"]), None)
    return found if snapshot is None else replace(found, snapshot=int(snapshot))


def _snapshot(fields: Mapping[str, Any]) -> Snapshot:
    parent = fields.get("parent-snapshot-id")
    return Snapshot(
        int(fields["snapshot-id"]),
        None if parent in {None, -1} else int(parent),
        str(fields.get("manifest-list", "")),
        dict(fields.get("summary") or {}),
    )
