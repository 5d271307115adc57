"""Cuts batches out of a table and restores them, each in a transaction.

Rows move to a backup table, named in ``manifest.json`` first, so interrupted changes can resume: it exists exactly
while rows are cut.

Foreign rows are found by ``xmin``: a batch's rows have the same transaction, so a later transaction is somebody else's.
Batches are in order, so a batch with all rows newer than a later batch's was updated as a whole. Tables without batch
ids show nothing of this.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.sink import NO_OTHERS, Cut, Others, after_batch, newest_batch
from slackwater.sinks.common.changes import RecordFile, damaged, foreign_cut
from slackwater.sinks.common.database.marker import Marker, limit_wait
from slackwater.sinks.common.mark import NONE_YET
from slackwater.sinks.postgres.names import BATCH_COLUMN, TableName, count, quoted, run
from slackwater.sinks.postgres.table import read_columns

if TYPE_CHECKING:
    from sqlalchemy import Connection


LOCK_WAIT_S = 30
_AS_TEXT = ("timezone = 'UTC'", "datestyle = 'ISO, MDY'", "intervalstyle = 'postgres'", "extra_float_digits = 1")
"""Settings with which a value is the same text in every session."""


def lock_writers_out(connection: Connection, table: TableName) -> None:
    """Lock writers out until the transaction ends; reads are possible."""
    run(connection, f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'")
    run(connection, f"LOCK TABLE {table.quoted} IN SHARE ROW EXCLUSIVE MODE")


def state_of_rows(connection: Connection, table: TableName, until: int | None = None) -> str:
    condition = "" if until is None else f" WHERE {BATCH_COLUMN} <= {until} OR {BATCH_COLUMN} IS NULL"
    for setting in _AS_TEXT:
        run(connection, f"SET LOCAL {setting}")
    # A sum does not depend on the order of the rows; of ``bigint`` it is ``numeric``, which does not overflow.
    rows, digest = run(
        connection,
        "SELECT count(*), coalesce(sum(hashtextextended(ROW(one.*)::text, 0)), 0) "
        f"FROM {table.quoted} AS one{condition}",
    )[0]
    return f"{rows} rows, state {digest}"


def unmarked_rows(connection: Connection, table: TableName, *, keep_batch_id: bool) -> Others:
    condition = f" WHERE {BATCH_COLUMN} IS NOT NULL" if keep_batch_id else ""
    return Others(int(run(connection, f"SELECT count(*) FROM {table.quoted}{condition}")[0][0]), sure=False)


def others_after(connection: Connection, table: TableName, after: int, written: int, *, keep_batch_id: bool) -> Others:
    """Foreign rows above batch ``after``; without batch ids all possible rows."""
    if not keep_batch_id:
        if written <= after:
            return NO_OTHERS
        return unmarked_rows(connection, table, keep_batch_id=False)
    # By ``age``: transaction ids wrap around, and the type ``xid`` has no order.
    rows = run(
        connection,
        f"SELECT count(*) FROM (SELECT {BATCH_COLUMN} AS batch, age(xmin) AS age, "
        f"max(age(xmin)) OVER (PARTITION BY {BATCH_COLUMN}) AS oldest, "
        f"max(age(xmin)) FILTER (WHERE {BATCH_COLUMN} <= {written}) OVER (ORDER BY {BATCH_COLUMN} DESC "
        f"GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS oldest_later FROM {table.quoted} "
        f"WHERE {BATCH_COLUMN} > {after}) one WHERE batch > {written} OR age < oldest OR age < oldest_later",
    )[0][0]
    return Others(int(rows))


@dataclass(frozen=True, slots=True)
class Record:
    output: str
    backup_table: str
    after: int
    batches: tuple[int, ...]
    rows: int


RECORD = RecordFile("manifest.json", "slackwater.table-backup/1", Record)


def rows_after(connection: Connection, table: TableName, batch: int) -> int:
    return int(run(connection, f"SELECT count(*) FROM {table.quoted} WHERE {BATCH_COLUMN} > {batch}")[0][0])


def make_record(output: str, cut: Cut) -> Record:
    return Record(output, f"slackwater_cut_{uuid.uuid4().hex}", cut.after, cut.batches, cut.rows or 0)


def delete_batches(connection: Connection, table: TableName, marker: Marker, record: Record, others: Others) -> None:
    """Move rows to the backup table, repeatably. Raises Refused with nothing changed.

    ``others``: known foreign rows in the cut.
    """
    # Locks the marker's row before the table, as a batch does: in another order both could wait for each other.
    written = _written(connection, marker)
    if _exists(connection, table.next_to(record.backup_table)):
        return
    if written != record.batches[-1]:
        raise _changed(record, f"batch {record.batches[-1]} as the newest", newest_batch(written))
    backup = table.next_to(record.backup_table).quoted
    after = f"WHERE {BATCH_COLUMN} > {record.after}"
    lock_writers_out(connection, table)
    found = others_after(connection, table, record.after, written, keep_batch_id=True)
    if found != others:
        raise _changed(record, f"{others.text} of others", f"{found.text} of others")
    run(connection, f"CREATE TABLE {backup} AS SELECT {_columns(connection, table)} FROM {table.quoted} {after}")
    deleted = count(connection, f"DELETE FROM {table.quoted} {after}")
    if deleted != record.rows:
        raise _changed(record, f"{record.rows} rows", f"{deleted} rows")
    marker.move(connection, record.after)


def restore(connection: Connection, table: TableName, marker: Marker, record: Record) -> None:
    """Undo ``delete_batches``, repeatably. Raises Refused with nothing changed."""
    if not check_restore(connection, table, marker, record):
        return
    backup = table.next_to(record.backup_table)
    columns = _columns(connection, table)
    # A column that is GENERATED ALWAYS AS IDENTITY refuses given values without OVERRIDING SYSTEM VALUE.
    run(
        connection,
        f"INSERT INTO {table.quoted} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {backup.quoted}",
    )
    run(connection, f"DROP TABLE {backup.quoted}")
    marker.move(connection, record.batches[-1])


def check_restore(connection: Connection, table: TableName, marker: Marker, record: Record) -> bool:
    written = _written(connection, marker)
    backup = table.next_to(record.backup_table)
    if not _exists(connection, table):
        raise _changed(record, f"table {table}", "no table")
    if not _exists(connection, backup):
        if written >= record.batches[-1]:
            return False
        raise damaged(record.backup_table, f"{record.rows} rows", "no table")
    if written > record.after:
        target = f"batch:{record.after}" if record.after >= 0 else "earliest"
        raise Refused(
            "restore-conflict",
            f"Batch {written} was written to the output after the cut; restoring would mix two histories",
            where=record.output,
            expected=f"{newest_batch(record.after)} as the newest",
            hint=f"cut the new batches first: {command('plan', 'rebuild', 'STREAM', '--at', target)}",
        )
    held = int(run(connection, f"SELECT count(*) FROM {backup.quoted}")[0][0])
    if held != record.rows:
        raise damaged(record.backup_table, f"{record.rows} rows", f"{held} rows")
    return True


def check_record(record: Record, cut: Cut, location: str) -> None:
    if (record.output, record.after, record.batches) != (location, cut.after, cut.batches):
        raise foreign_cut(location, cut.after, f"a cut of {record.output} {after_batch(record.after)}")


def mismatch(cut: Cut, location: str) -> Refused:
    return Refused(
        "cut-mismatch",
        f"The table does not have the same rows {after_batch(cut.after)} as the cut",
        where=location,
        expected=f"{cut.rows} rows of {len(cut.batches)} batches",
        hint=f"make a new plan: {command('plan', 'rebuild', 'STREAM')}",
    )


def _written(connection: Connection, marker: Marker) -> int:
    limit_wait(connection)
    mark = marker.read(connection, lock=True)
    return NONE_YET if mark is None else mark.batch_id


def _exists(connection: Connection, table: TableName) -> bool:
    return bool(read_columns(connection, table))


def _columns(connection: Connection, table: TableName) -> str:
    return ", ".join(quoted(column.name) for column in read_columns(connection, table) if not column.generated)


def _changed(record: Record, expected: str, found: str) -> Refused:
    return Refused(
        "output-changed",
        "The table was changed since the cut was planned",
        where=record.output,
        expected=expected,
        found=found,
        hint=f"make a new plan: {command('plan', 'rebuild', 'STREAM')}",
    )
