"""Cuts batches out of a table and puts them back, each in one transaction.

The rows move to a backup table. Its name is in ``manifest.json`` of the operation's backup before anything is changed,
so that an interrupted cut or restore finds what it did: the backup table exists exactly while the rows are cut.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.errors import Refused
from slackwater.model.sink import Cut
from slackwater.sinks.backup import RecordFile, damaged, foreign
from slackwater.sinks.database.marker import Marker
from slackwater.sinks.mark import NONE_YET
from slackwater.sinks.postgres.names import BATCH_COLUMN, TableName, quoted
from slackwater.sinks.postgres.statements import count, run
from slackwater.sinks.postgres.table import read_columns

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Record:
    """What one cut takes out of which table, and the table that has it then."""

    output: str
    backup_table: str
    after: int
    batches: tuple[int, ...]
    rows: int


RECORD = RecordFile("manifest.json", "slackwater.table-backup/1", Record)


def rows_after(connection: Connection, table: TableName, batch: int) -> int:
    """How many rows the batches after ``batch`` wrote."""
    return int(run(connection, f"SELECT count(*) FROM {table.quoted} WHERE {BATCH_COLUMN} > {batch}")[0][0])


def make_record(output: str, cut: Cut) -> Record:
    """The record of a cut that is about to start."""
    return Record(output, f"slackwater_cut_{uuid.uuid4().hex}", cut.after, cut.batches, cut.rows or 0)


def take_out(connection: Connection, table: TableName, marker: Marker, record: Record) -> None:
    """Move the rows to the backup table, unless they are there. Raises Refused with nothing changed."""
    written = _written(connection, marker)
    if _exists(connection, table.beside(record.backup_table)):
        return
    if written != record.batches[-1]:
        raise _changed(record, f"batch {record.batches[-1]} as the newest", f"batch {written}")
    backup = table.beside(record.backup_table).quoted
    after = f"WHERE {BATCH_COLUMN} > {record.after}"
    run(connection, f"LOCK TABLE {table.quoted} IN SHARE ROW EXCLUSIVE MODE")
    run(connection, f"CREATE TABLE {backup} AS SELECT {_columns(connection, table)} FROM {table.quoted} {after}")
    deleted = count(connection, f"DELETE FROM {table.quoted} {after}")
    if deleted != record.rows:
        raise _changed(record, f"{record.rows} rows", f"{deleted} rows")
    marker.move(connection, record.after)


def put_back(connection: Connection, table: TableName, marker: Marker, record: Record) -> None:
    """Undo ``take_out``, unless that was done. Raises Refused with nothing changed."""
    written = _written(connection, marker)
    backup = table.beside(record.backup_table)
    if not _exists(connection, backup):
        if written >= record.batches[-1]:
            return
        raise damaged(record.backup_table, f"{record.rows} rows", "no table")
    if written > record.after:
        raise Refused(
            "restore-conflict",
            f"Batch {written} was written to the output after the cut; restoring would mix two histories",
            where=record.output,
            expected=f"batch {record.after} as the newest",
            hint=f"cut the new batches first: slackwater plan rebuild STREAM --at batch:{record.after}",
        )
    held = int(run(connection, f"SELECT count(*) FROM {backup.quoted}")[0][0])
    if held != record.rows:
        raise damaged(record.backup_table, f"{record.rows} rows", f"{held} rows")
    columns = _columns(connection, table)
    run(
        connection,
        f"INSERT INTO {table.quoted} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {backup.quoted}",
    )
    run(connection, f"DROP TABLE {backup.quoted}")
    marker.move(connection, record.batches[-1])


def check_record(record: Record, cut: Cut, location: str) -> None:
    """Raises Refused (``backup-foreign``) if the record belongs to another cut or to another output."""
    if (record.output, record.after, record.batches) != (location, cut.after, cut.batches):
        raise foreign(location, cut.after, f"a cut of {record.output} after batch {record.after}")


def mismatch(cut: Cut, location: str) -> Refused:
    """The refusal of a cut that the output does not confirm."""
    return Refused(
        "cut-mismatch",
        f"The table does not have the same rows after batch {cut.after} as the cut",
        where=location,
        expected=f"{cut.rows} rows of {len(cut.batches)} batches",
        hint="make a new plan: slackwater plan rebuild STREAM",
    )


def _written(connection: Connection, marker: Marker) -> int:
    mark = marker.read(connection, lock=True)
    return NONE_YET if mark is None else mark.batch_id


def _exists(connection: Connection, table: TableName) -> bool:
    return bool(read_columns(connection, table))


def _columns(connection: Connection, table: TableName) -> str:
    """The columns that can be copied back: a generated one is computed again."""
    return ", ".join(quoted(column.name) for column in read_columns(connection, table) if not column.generated)


def _changed(record: Record, expected: str, found: str) -> Refused:
    return Refused(
        "output-changed",
        "The table was changed since the cut was planned",
        where=record.output,
        expected=expected,
        found=found,
        hint="make a new plan: slackwater plan rebuild STREAM",
    )
