"""Cuts batches out of an Iceberg table and restores them, each by a recorded commit.

A cut makes an older snapshot current, and lowers the recorded batch in the same version, so no batch is skipped later.
No file is deleted: until ``expire_snapshots`` the old snapshot can be restored.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.core.errors import Refused
from slackwater.core.sink import newest_batch
from slackwater.sinks.common.changes import CutRecord, RecordFile, TableState
from slackwater.sinks.iceberg.metadata import Mark, Metadata, lineage, move, written
from slackwater.sinks.iceberg.versions import Table


@dataclass(frozen=True, slots=True)
class Record(CutRecord):
    """The cut from snapshot ``head`` to ``target``; ``None``: before the first snapshot."""

    stream: str
    head: int | None
    target: int | None

    @property
    def planned_version(self) -> str:
        return str(self.head)


RECORD = RecordFile("iceberg.json", "slackwater.iceberg-backup/1", Record, alone=True)


def delete_batches(table: Table, metadata: Metadata, record: Record) -> None:
    _move(table, metadata, Mark(record.stream, _next_epoch(metadata), record.after, record.target), record)


def restore(table: Table, metadata: Metadata, record: Record) -> None:
    check_kept(record.output, metadata, record.head)
    _move(table, metadata, Mark(record.stream, _next_epoch(metadata), record.last, record.head), record)


def check_kept(location: str, metadata: Metadata, snapshot: int | None) -> None:
    if snapshot is not None and snapshot not in metadata.snapshots:
        raise Refused(
            "iceberg-restore",
            "The Iceberg table no longer has the snapshot from before the operation, so that it cannot be restored",
            where=location,
            expected=f"snapshot {snapshot}",
            found=f"{len(metadata.snapshots)} other snapshots",
            hint="expire_snapshots has deleted its files; run the stream, which writes the batches again",
        )


def state_after(table: Table, metadata: Metadata, record: Record) -> TableState:
    batch = written(metadata, table.older(metadata), record.stream)
    if (metadata.current, batch) == (record.head, record.last):
        return "whole"
    if (metadata.current, batch) == (record.target, record.after):
        return "cut"
    history = {identifier for identifier, _ in lineage(metadata, table.older(metadata))}
    # ``None``, the table before its first snapshot, is in every complete history and shows nothing.
    if record.head in history - {None}:
        return "uncut" if batch == record.last else "other"
    return "cut-changed" if batch == record.after and record.target in history else "other"


def changed(record: Record, code: str) -> Refused:
    return Refused(
        code,
        "The Iceberg table was changed after the cut was planned; to continue would undo those changes",
        where=record.output,
        expected=f"snapshot {record.head} with batch {record.last}, or {record.target} with "
        f"{newest_batch(record.after)}",
        hint="find out in the table's history what has written to it (in Spark: SELECT * FROM TABLE.history), then "
        "make a new plan",
    )


def _move(table: Table, metadata: Metadata, mark: Mark, record: Record) -> None:
    try:
        table.commit(metadata, move(metadata.branch, mark))
    except FileExistsError as error:
        raise changed(record, "output-changed") from error


def _next_epoch(metadata: Metadata) -> int:
    """The next epoch, which refuses an earlier run that may be about to publish."""
    return metadata.mark.epoch + 1 if metadata.mark is not None else 1
