"""Stages a table and swaps it in: a transaction exchanges names and marks.

The staged table copies columns, defaults, checks, indexes (renamed) and comments. The exchange passes on owner,
privileges and storage parameters, and redirects views. Other dependents would silently stay with the old table, so
foreign keys, triggers, policies, rules, own publications, materialized views and inheritance are refused.

A comment marks the table as the operation's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from slackwater.core.errors import Refused
from slackwater.core.sink import Others
from slackwater.sinks.common.changes import occupied, unsupported
from slackwater.sinks.common.database.marker import Marker
from slackwater.sinks.postgres.names import BATCH_COLUMN, TableName, literal, quoted, run
from slackwater.sinks.postgres.table import read_columns

if TYPE_CHECKING:
    from sqlalchemy import Connection

State = Literal["staged", "replaced"]

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


def state_of(connection: Connection, table: TableName, operation: str) -> State | None:
    staging = table.staging(operation)
    if not read_columns(connection, staging):
        return None
    comment = _comment(connection, staging)
    if comment == _mark("staged", operation):
        return "staged"
    if comment == _mark("replaced", operation):
        return "replaced"
    raise occupied(str(staging), operation, "a table without the operation's comment")


def check_supported(connection: Connection, table: TableName) -> None:
    """Raises Refused (``swap-unsupported``) if a dependent would stay with the replaced table."""
    if not read_columns(connection, table):
        raise unsupported(str(table), "a table", "none")
    found = run(connection, _IN_THE_WAY.format(table=_oid(table)))
    if found:
        expected = "a table without foreign keys, triggers, policies and the like; plain views may read it"
        raise unsupported(str(table), expected, ", ".join(sorted({row[0] for row in found})))


def create(connection: Connection, table: TableName, operation: str) -> None:
    staging = table.staging(operation)
    run(connection, f"CREATE TABLE {staging.quoted} (LIKE {table.quoted} INCLUDING ALL)")
    run(connection, f"COMMENT ON TABLE {staging.quoted} IS {literal(_mark('staged', operation))}")


def fill(connection: Connection, table: TableName, staging: TableName, after: int | None) -> None:
    """Copy rows of batches up to ``after`` and without a batch; ``None``: all."""
    columns = ", ".join(quoted(column.name) for column in read_columns(connection, table) if not column.generated)
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


def exchange(connection: Connection, table: TableName, operation: str, became: State) -> None:
    """Exchange tables and marks; the table that is then staged is marked ``became``."""
    staging = table.staging(operation)
    # Without a path the definition of a view names each table with its schema.
    run(connection, "SET LOCAL search_path = ''")
    run(connection, f"LOCK TABLE {table.quoted}, {staging.quoted} IN ACCESS EXCLUSIVE MODE")
    views = run(connection, _VIEWS.format(table=_oid(table)))
    comment = _comment(connection, table)
    _take_over(connection, table, staging)
    held = table.next_to(f"{staging.table}_held")
    for old, new in ((table, held), (staging, table), (held, staging)):
        run(connection, f"ALTER TABLE {old.quoted} RENAME TO {quoted(new.table)}")
    run(connection, f"COMMENT ON TABLE {table.quoted} IS {'NULL' if comment is None else literal(comment)}")
    run(connection, f"COMMENT ON TABLE {staging.quoted} IS {literal(_mark(became, operation))}")
    # A view refers to a table by its oid and not by its name: it would still read the replaced table.
    for view, definition, options in views:
        clause = f" WITH ({options})" if options else ""
        run(connection, f"CREATE OR REPLACE VIEW {view}{clause} AS {definition}")
    Marker(str(table), table.schema).exchange(connection, Marker(str(staging), staging.schema))


def conflict(location: str, expected: str, found: str, others: Others) -> Refused:
    return Refused(
        "restore-conflict",
        "Others have changed the table since the swap; going back would undo that",
        where=location,
        expected=expected,
        found=f"{found}, with {others.text} of others in later batches" if others.any else found,
        hint="copy the rows of others to another table and take them out of this one, then run the command again",
    )


def drop(connection: Connection, staging: TableName) -> None:
    run(connection, f"DROP TABLE {staging.quoted}")
    Marker(str(staging), staging.schema).remove(connection)


def _take_over(connection: Connection, table: TableName, staging: TableName) -> None:
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


def _privileges(connection: Connection, table: TableName) -> set[tuple[str, int, str, str, bool]]:
    """The privileges: column or ``""``, grantee's id (0: PUBLIC) and name, privilege, grantable."""
    rows = run(connection, _PRIVILEGES.format(table=_oid(table)))
    return {(column, grantee, user, privilege, may_grant) for column, grantee, user, privilege, may_grant in rows}


def _comment(connection: Connection, table: TableName) -> str | None:
    found: str | None = run(connection, f"SELECT obj_description({_oid(table)}, 'pg_class')")[0][0]
    return found


def _mark(state: State, operation: str) -> str:
    return f"slackwater: {state} by operation {operation}"


def _oid(table: TableName) -> str:
    return f"{literal(table.quoted)}::regclass"
