"""Cuts batches out of a PostgreSQL table and restores them, and swaps a staged table in, each in a transaction.

Cut rows move to a backup table, named in ``manifest.json`` first, so interrupted changes can resume: it exists exactly
while rows are cut.

Foreign rows are found by ``xmin``: a batch's rows have the same transaction, so a later transaction is somebody else's.
Batches are in order, so a batch with all rows newer than a later batch's was updated as a whole. Tables without batch
ids show nothing of this.

The staged table copies columns, defaults, checks, indexes (renamed) and comments. The exchange passes on owner,
privileges and storage parameters, and redirects views. Other dependents would silently stay with the old table, so
foreign keys, triggers, policies, rules, own publications, materialized views and inheritance are refused. A comment
marks the table as the operation's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.core.checkpoint import NONE_YET
from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.sink import NO_OTHERS, Others, newest_batch
from slackwater.sinks.common.changes import RecordFile, damaged, occupied, unsupported
from slackwater.sinks.common.contract import SwapPart
from slackwater.sinks.common.marker import Marker, limit_wait
from slackwater.sinks.postgres.table import (
    BATCH_COLUMN,
    PostgresName,
    count,
    count_rows,
    literal,
    quoted,
    read_columns,
    run,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection


LOCK_WAIT_S = 30
_AS_TEXT = ("timezone = 'UTC'", "datestyle = 'ISO, MDY'", "intervalstyle = 'postgres'", "extra_float_digits = 1")
"""Settings with which a value is the same text in every session."""


def lock_writers_out(connection: Connection, table: PostgresName) -> None:
    """Lock writers out until the transaction ends; reads are possible."""
    run(connection, f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'")
    run(connection, f"LOCK TABLE {table.quoted} IN SHARE ROW EXCLUSIVE MODE")


def state_of_rows(connection: Connection, table: PostgresName, until: int | None = None) -> str:
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


def unmarked_rows(connection: Connection, table: PostgresName, *, keep_batch_id: bool) -> Others:
    condition = f" WHERE {BATCH_COLUMN} IS NOT NULL" if keep_batch_id else ""
    return Others(count_rows(connection, table, condition), sure=False)


def others_after(
    connection: Connection, table: PostgresName, after: int, written: int, *, keep_batch_id: bool
) -> Others:
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
class PostgresCut:
    output: str
    backup_table: str
    after: int
    batches: tuple[int, ...]
    rows: int


RECORD = RecordFile("manifest.json", "slackwater.table-backup/1", PostgresCut)


def delete_batches(
    connection: Connection, table: PostgresName, marker: Marker, record: PostgresCut, others: Others
) -> None:
    """Move rows to the backup table, repeatably. Raises Refused with nothing changed.

    ``others``: known foreign rows in the cut.
    """
    # Locks the marker's row before the table, as a batch does: in another order both could wait for each other.
    written = _written(connection, marker)
    if read_columns(connection, table.next_to(record.backup_table)):
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


def restore(connection: Connection, table: PostgresName, marker: Marker, record: PostgresCut) -> None:
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


def check_restore(connection: Connection, table: PostgresName, marker: Marker, record: PostgresCut) -> bool:
    written = _written(connection, marker)
    backup = table.next_to(record.backup_table)
    if not read_columns(connection, table):
        raise _changed(record, f"table {table}", "no table")
    if not read_columns(connection, backup):
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
    held = count_rows(connection, backup)
    if held != record.rows:
        raise damaged(record.backup_table, f"{record.rows} rows", f"{held} rows")
    return True


def _written(connection: Connection, marker: Marker) -> int:
    limit_wait(connection)
    mark = marker.read(connection, lock=True)
    return NONE_YET if mark is None else mark.batch_id


def _columns(connection: Connection, table: PostgresName) -> str:
    return ", ".join(quoted(column.name) for column in read_columns(connection, table) if not column.generated)


def _changed(record: PostgresCut, expected: str, found: str) -> Refused:
    return Refused(
        "output-changed",
        "The table was changed since the cut was planned",
        where=record.output,
        expected=expected,
        found=found,
        hint=f"make a new plan: {command('plan', 'rebuild', 'STREAM')}",
    )


_IN_THE_WAY = """
SELECT 'no plain table' FROM pg_class c WHERE c.oid = {table} AND (c.relkind <> 'r' OR c.relispartition)
UNION ALL SELECT 'inheritance' FROM pg_inherits WHERE inhparent = {table} OR inhrelid = {table}
UNION ALL SELECT 'foreign key ' || conname FROM pg_constraint WHERE conrelid = {table} AND contype = 'f'
UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgrelid = {table} AND NOT tgisinternal
UNION ALL SELECT 'row security' FROM pg_class c WHERE c.oid = {table} AND c.relrowsecurity
UNION ALL SELECT 'policy ' || polname FROM pg_policy WHERE polrelid = {table}
UNION ALL SELECT 'rule ' || rulename FROM pg_rewrite WHERE ev_class = {table}
UNION ALL SELECT 'publication ' || p.pubname FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
  WHERE r.prrelid = {table}
UNION ALL SELECT pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_depend d JOIN pg_class c ON c.oid = {table}
  WHERE d.deptype = 'n' AND ((d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid)
    OR (d.refclassid = 'pg_type'::regclass AND d.refobjid = c.reltype))
  AND NOT (d.classid = 'pg_constraint'::regclass
    AND d.objid IN (SELECT oid FROM pg_constraint WHERE conrelid = c.oid))
  AND NOT (d.classid = 'pg_attrdef'::regclass AND d.objid IN (SELECT oid FROM pg_attrdef WHERE adrelid = c.oid))
  AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (SELECT indexrelid FROM pg_index WHERE indrelid = c.oid))
  AND NOT EXISTS (SELECT 1 FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class
    WHERE d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND v.relkind = 'v')
"""
_VIEWS = """
SELECT DISTINCT v.oid::regclass::text, pg_get_viewdef(v.oid), array_to_string(v.reloptions, ', ')
FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class
WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = {table}
AND v.relkind = 'v'
"""
# Until the first GRANT or REVOKE ``relacl`` is null, which stands for the owner's default privileges.
_PRIVILEGES = """
SELECT '', a.grantee, pg_get_userbyid(a.grantee), a.privilege_type, a.is_grantable
FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = {table}
UNION ALL SELECT t.attname, a.grantee, pg_get_userbyid(a.grantee), a.privilege_type, a.is_grantable
FROM pg_attribute t, aclexplode(t.attacl) a WHERE t.attrelid = {table} AND t.attnum > 0 AND NOT t.attisdropped
"""
_SEQUENCES = """
SELECT s.oid::regclass::text, a.attname FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'a'
AND d.refobjid = {table}
"""
_IDENTITIES = "SELECT attname FROM pg_attribute WHERE attrelid = {table} AND attidentity <> '' AND NOT attisdropped"


def state_of(connection: Connection, table: PostgresName, operation: str) -> SwapPart | None:
    staging = table.staging(operation)
    if not read_columns(connection, staging):
        return None
    comment = _comment(connection, staging)
    if comment == mark_of("staged", operation):
        return "staged"
    if comment == mark_of("replaced", operation):
        return "replaced"
    raise occupied(str(staging), operation, "a table without the operation's comment")


def check_supported(connection: Connection, table: PostgresName) -> None:
    """Raises Refused (``swap-unsupported``) if a dependent would stay with the replaced table."""
    if not read_columns(connection, table):
        raise unsupported(str(table), "a table", "none")
    found = run(connection, _IN_THE_WAY.format(table=_oid(table)))
    if found:
        expected = "a table without foreign keys, triggers, policies and the like; plain views may read it"
        raise unsupported(str(table), expected, ", ".join(sorted({row[0] for row in found})))


def fill(connection: Connection, table: PostgresName, staging: PostgresName, after: int | None) -> None:
    """Copy rows of batches up to ``after`` and without a batch; ``None``: all."""
    columns = _columns(connection, table)
    condition = "" if after is None else f" WHERE {BATCH_COLUMN} <= {after} OR {BATCH_COLUMN} IS NULL"
    run(
        connection,
        f"INSERT INTO {staging.quoted} ({columns}) OVERRIDING SYSTEM VALUE "
        f"SELECT {columns} FROM {table.quoted}{condition}",
    )
    # LIKE gives an identity column a new sequence, which would count from the start again.
    for (column,) in run(connection, _IDENTITIES.format(table=_oid(table))):
        old, new = (f"pg_get_serial_sequence({literal(one.quoted)}, {literal(column)})" for one in (table, staging))
        sequence = run(connection, f"SELECT {old}")[0][0]
        run(connection, f"SELECT setval({new}, last_value, is_called) FROM {sequence}")


def exchange(connection: Connection, table: PostgresName, operation: str, became: SwapPart) -> None:
    """Exchange tables and marks; the table that is then staged is marked ``became``."""
    staging = table.staging(operation)
    # Without a path the definition of a view names each table with its schema.
    run(connection, "SET LOCAL search_path = ''")
    run(connection, f"LOCK TABLE {table.quoted}, {staging.quoted} IN ACCESS EXCLUSIVE MODE")
    views = run(connection, _VIEWS.format(table=_oid(table)))
    comment = _comment(connection, table)
    facts = "SELECT pg_get_userbyid(relowner), array_to_string(reloptions, ', ') FROM pg_class WHERE oid = {}"
    owner, options = run(connection, facts.format(_oid(table)))[0]
    # Before the privileges are compared, because ALTER TABLE OWNER TO changes them.
    if run(connection, facts.format(_oid(staging)))[0][0] != owner:
        run(connection, f"ALTER TABLE {staging.quoted} OWNER TO {quoted(owner)}")
    if options:
        run(connection, f"ALTER TABLE {staging.quoted} SET ({options})")
    wanted, given = _privileges(connection, table), _privileges(connection, staging)
    for column, grantee, user, privilege, _ in sorted(given - wanted):
        what = f"{privilege} ({quoted(column)})" if column else privilege
        run(connection, f"REVOKE {what} ON {staging.quoted} FROM {quoted(user) if grantee else 'PUBLIC'}")
    for column, grantee, user, privilege, may_grant in sorted(wanted - given):
        what = f"{privilege} ({quoted(column)})" if column else privilege
        option = " WITH GRANT OPTION" if may_grant else ""
        run(connection, f"GRANT {what} ON {staging.quoted} TO {quoted(user) if grantee else 'PUBLIC'}{option}")
    for sequence, column in run(connection, _SEQUENCES.format(table=_oid(table))):
        # Of a serial column, whose default both tables share: dropping the replaced table would need it.
        run(connection, f"ALTER SEQUENCE {sequence} OWNED BY {staging.quoted}.{quoted(column)}")
    held = table.next_to(f"{staging.table}_held")
    for old, new in ((table, held), (staging, table), (held, staging)):
        run(connection, f"ALTER TABLE {old.quoted} RENAME TO {quoted(new.table)}")
    run(connection, f"COMMENT ON TABLE {table.quoted} IS {'NULL' if comment is None else literal(comment)}")
    run(connection, f"COMMENT ON TABLE {staging.quoted} IS {literal(mark_of(became, operation))}")
    # A view refers to a table by its oid and not by its name: it would still read the replaced table.
    for view, definition, view_options in views:
        clause = f" WITH ({view_options})" if view_options else ""
        run(connection, f"CREATE OR REPLACE VIEW {view}{clause} AS {definition}")
    Marker(str(table), table.schema).exchange(connection, Marker(str(staging), staging.schema))


def _privileges(connection: Connection, table: PostgresName) -> set[tuple[str, int, str, str, bool]]:
    """The privileges: column or ``""``, grantee's id (0: PUBLIC) and name, privilege, grantable."""
    rows = run(connection, _PRIVILEGES.format(table=_oid(table)))
    return {(column, grantee, user, privilege, may_grant) for column, grantee, user, privilege, may_grant in rows}


def _comment(connection: Connection, table: PostgresName) -> str | None:
    found: str | None = run(connection, f"SELECT obj_description({_oid(table)}, 'pg_class')")[0][0]
    return found


def mark_of(state: SwapPart, operation: str) -> str:
    return f"slackwater: {state} by operation {operation}"


def _oid(table: PostgresName) -> str:
    return f"{literal(table.quoted)}::regclass"
