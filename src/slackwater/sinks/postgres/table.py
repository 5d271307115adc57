"""A sink's table: created, and compared with the query before the first batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.core.errors import PipelineError
from slackwater.sinks.postgres.names import BATCH_COLUMN, TableName, fits, literal, quoted, run
from slackwater.sinks.postgres.types import StagedColumn, published

if TYPE_CHECKING:
    from sqlalchemy import Connection

NULLS_NOT_DISTINCT_SINCE = 150000
_KEEPS_PLACES = frozenset({"timestamptz", "timestamp", "time", "interval"})


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column. ``kind`` is the type name, ``declared`` includes length or precision."""

    name: str
    kind: str
    declared: str
    modifier: int
    is_enum: bool
    not_null: bool
    filled: bool
    generated: bool

    @property
    def places(self) -> int | None:
        """The decimal places, ``None`` for unlimited."""
        if self.modifier < 0:
            return None
        base = self.kind.removeprefix("_")
        if base == "numeric":
            # Eleven bits with a sign, below the precision (NUMERIC_SCALE_BITS in the server's numeric.c).
            return (((self.modifier - 4) & 0x7FF) ^ 0x400) - 0x400
        # The lower half of an interval's modifier is its precision.
        return self.modifier & 0xFFFF if base in _KEEPS_PLACES else None


def read_columns(connection: Connection, table: TableName) -> tuple[TableColumn, ...]:
    """The columns; empty without a table or updatable view."""
    rows = run(
        connection,
        "SELECT a.attname, t.typname, format_type(a.atttypid, a.atttypmod), a.atttypmod, t.typtype = 'e', "
        "a.attnotnull, a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' "
        "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_class c ON c.oid = a.attrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE n.nspname = {literal(table.schema)} AND c.relname = {literal(table.table)} "
        "AND c.relkind IN ('r', 'p', 'v', 'f') AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
    )
    return tuple(TableColumn(*row) for row in rows)


def create_statements(
    table: TableName, columns: Sequence[StagedColumn], keys: Sequence[str], *, batch: bool, version: int
) -> list[str]:
    lines = [f"{quoted(column.name)} {column.kind.created}" for column in columns]
    if batch:
        lines.append(f"{BATCH_COLUMN} bigint NOT NULL")
    if keys:
        # A null key is a key: Spark groups by it, too.
        nulls = "NULLS NOT DISTINCT " if version >= NULLS_NOT_DISTINCT_SINCE else ""
        lines.append(f"UNIQUE {nulls}({', '.join(quoted(key) for key in keys)})")
    return [f"CREATE TABLE IF NOT EXISTS {table.quoted} ({', '.join(lines)})"]


def check_types(columns: Sequence[StagedColumn], table: TableName) -> None:
    """Raises PipelineError for a column that PostgreSQL cannot take or would rename."""
    for column in columns:
        if not column.kind.takers:
            raise PipelineError(
                "sink-type",
                f"PostgreSQL has no type for column {column.name}",
                where=str(table),
                found=column.spark_type,
                hint="cast it in the query, for example to a string",
            )
        if not fits(column.name) or column.name == BATCH_COLUMN:
            raise _unusable(table, "a name of at most 63 bytes that is not the sink's own", column.name)
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _unusable(table, "each name once", ", ".join(twice))


def match_columns(
    table: TableName, query: Sequence[StagedColumn], found: Sequence[TableColumn], *, batch: bool
) -> dict[str, str]:
    known = {column.name: column for column in found}
    missing = [column.name for column in query if column.name not in known]
    if batch and BATCH_COLUMN not in known:
        missing.append(BATCH_COLUMN)
    if missing:
        raise _unusable(table, f"columns {', '.join(missing)} of the query in the table", _names(known))
    given = {column.name for column in query} | ({BATCH_COLUMN} if batch else set())
    unfilled = [c.name for c in found if c.name not in given and c.not_null and not c.filled and not c.generated]
    if unfilled:
        raise _unusable(table, f"a value for {', '.join(unfilled)}, which must not be null", _names(given))
    return {column.name: _expression(table, column, known[column.name]) for column in query}


def _expression(table: TableName, column: StagedColumn, taker: TableColumn) -> str:
    kind = column.kind
    takes = "any" in kind.takers or taker.kind in kind.takers or (taker.is_enum and "enum" in kind.takers)
    exact = kind.places is None or taker.places is None or taker.places >= kind.places or taker.kind == "jsonb"
    if takes and exact and not taker.generated:
        return published(kind, column.staged_name, taker.kind, taker.declared)
    raise PipelineError(
        "sink-column-type",
        f"Column {column.name} of the table cannot take the query's values without changing them",
        where=f"{table}.{column.name}",
        expected=f"{column.spark_type}: {kind.created} in PostgreSQL",
        found="a generated column" if taker.generated else taker.declared,
        hint=f"cast it in the query, or: ALTER TABLE {table} ALTER COLUMN {column.name} TYPE {kind.created}",
    )


def check_keys(connection: Connection, table: TableName, keys: Sequence[str]) -> None:
    """Raises PipelineError unless a unique index finds each row by ``keys``, including nulls."""
    version = server_version(connection)
    nulls = "i.indnullsnotdistinct" if version >= NULLS_NOT_DISTINCT_SINCE else "false"
    # ON CONFLICT with column names alone finds no index that has a predicate or an expression.
    rows = run(
        connection,
        f"SELECT array_agg(a.attname::text ORDER BY a.attname), bool_or({nulls}) OR bool_and(a.attnotnull) "
        "FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
        f"WHERE i.indrelid = {literal(table.quoted)}::regclass AND i.indisunique AND i.indisvalid "
        "AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.indexrelid",
    )
    found = {tuple(row[0]): bool(row[1]) for row in rows}
    if found.get(tuple(sorted(keys))):
        return
    clause = "NULLS NOT DISTINCT " if version >= NULLS_NOT_DISTINCT_SINCE else ""
    columns = ", ".join(quoted(key) for key in keys)
    raise PipelineError(
        "sink-keys",
        "No unique index of the table finds a row by the sink's keys",
        where=str(table),
        expected=f"a unique index on {columns}, its columns NOT NULL or the index NULLS NOT DISTINCT",
        found="; ".join(sorted(", ".join(names) for names in found)) or "no unique index",
        hint=f"ALTER TABLE {table} ADD UNIQUE {clause}({columns})",
    )


def server_version(connection: Connection) -> int:
    return int(run(connection, "SHOW server_version_num")[0][0])


def _names(names: object) -> str:
    return ", ".join(sorted(names)) if isinstance(names, dict | set) else ""


def _unusable(table: TableName, expected: str, found: str) -> PipelineError:
    return PipelineError(
        "sink-columns",
        "The columns of the query and of the table do not match",
        where=str(table),
        expected=expected,
        found=found or "none",
        hint="change the query or the table, or let the sink create a new one: create=True",
    )
