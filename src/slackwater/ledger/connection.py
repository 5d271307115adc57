"""Statements on the ledger's tables, the same ones for both databases: ``:name`` stands for a value.

What may not happen: a value in the text of a statement; a driver's own types in a row.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from slackwater.ledger.tables import Table

Row = dict[str, Any]
Values = Mapping[str, Any]

_NONE: Values = {}
_TYPES = {
    "sqlite": {"serial": "INTEGER", "bytes": "BLOB"},
    "postgresql": {"serial": "SERIAL", "bytes": "BYTEA"},
}
_TABLE_EXISTS = {
    "sqlite": "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = :name",
    # Not to_regclass: it may answer from a cache of before another process created the table.
    "postgresql": "SELECT count(*) FROM pg_class WHERE relname = :name AND pg_table_is_visible(oid)",
}


class Connection:
    """A transaction on a database; ``driver`` is a connection of sqlite3 or psycopg."""

    def __init__(self, dialect: str, driver: Any) -> None:
        self._dialect = dialect
        self._driver = driver

    @property
    def types(self) -> Mapping[str, str]:
        """This database's names for the types that both have under different names."""
        return _TYPES[self._dialect]

    def other_than_tables(self) -> list[str]:
        """Views and the like of a SQLite file: reading one can take forever."""
        others = "SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index') ORDER BY name"
        return [str(name) for (name,) in self._cursor(others, _NONE).fetchall()]

    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name."""
        return bool(self.scalar(_TABLE_EXISTS[self._dialect], {"name": name}))

    def execute(self, statement: str, values: Values = _NONE) -> int:
        """Execute a statement; how many rows it changed."""
        return int(self._cursor(statement, values).rowcount)

    def scalar(self, statement: str, values: Values = _NONE) -> Any:
        """The first value of the first row, ``None`` if there is no row."""
        row = self._cursor(statement, values).fetchone()
        return row[0] if row else None

    def rows(self, table: Table, tail: str, values: Values = _NONE, *, only: Sequence[str] = ()) -> list[Row]:
        """Rows of one table. ``tail`` is what follows ``FROM``; ``only`` names some columns instead of all."""
        names = tuple(only or table.columns)
        return [dict(zip(names, row, strict=True)) for row in self.tuples(table, names, tail, values)]

    def tuples(self, table: Table, names: tuple[str, ...], tail: str, values: Values = _NONE) -> list[tuple[Any, ...]]:
        """The columns ``names`` of ``rows``, in this order."""
        found = self._cursor(_select(table, names, tail), values).fetchall()
        if not found:
            return []
        # By columns: a long history has hundreds of thousands of values.
        stored = zip(names, zip(*found, strict=True), strict=True)
        return list(zip(*(table.columns[name].read_all(column) for name, column in stored), strict=True))

    def first(self, table: Table, tail: str, values: Values = _NONE) -> Row | None:
        """The first of ``rows``."""
        return next(iter(self.rows(table, f"{tail} LIMIT 1", values)), None)

    def column(self, table: Table, name: str, tail: str, values: Values = _NONE) -> list[Any]:
        """One column of ``rows``."""
        return [value for (value,) in self.tuples(table, (name,), tail, values)]

    def update(self, table: Table, changes: Values, condition: str, values: Values = _NONE) -> int:
        """Change the rows that meet a condition; how many there were."""
        stored = {f"new_{name}": value for name, value in _stored(table, changes).items()}
        return self.execute(_update(table, tuple(changes), condition), {**stored, **values})

    def delete(self, table: Table, condition: str, values: Values) -> None:
        """Delete the rows that meet a condition."""
        self.execute(f"DELETE FROM {table.name} WHERE {condition}", values)

    def insert_numbered(self, table: Table, row: Values) -> int:
        """Insert a row whose ``id`` the database numbers; the id."""
        return int(self.scalar(f"{_insert(table, tuple(row))} RETURNING id", _stored(table, row)))

    def insert_absent(self, table: Table, row: Values) -> bool:
        """Insert a row unless its primary key exists; whether it was inserted."""
        return self.execute(f"{_insert(table, tuple(row))} ON CONFLICT DO NOTHING", _stored(table, row)) == 1

    def upsert(self, table: Table, rows: Sequence[Values]) -> None:
        """Insert rows with equal columns; a row whose primary key exists is updated."""
        if rows:
            statement = self._in_dialect(_upsert(table, tuple(rows[0])))
            self._driver.cursor().executemany(statement, [_stored(table, row) for row in rows])

    def _cursor(self, statement: str, values: Values) -> Any:
        return self._driver.cursor().execute(self._in_dialect(statement), values)

    def _in_dialect(self, statement: str) -> str:
        return statement if self._dialect == "sqlite" else _with_psycopg_names(statement)


def _stored(table: Table, row: Values) -> Row:
    return {name: table.columns[name].to_store(value) for name, value in row.items()}


# Cached: a running stream executes the same few statements for each batch.
@functools.cache
def _with_psycopg_names(statement: str) -> str:
    return re.sub(r":(\w+)", r"%(\1)s", statement)


@functools.cache
def _select(table: Table, columns: tuple[str, ...], tail: str) -> str:
    # With the table's name: SQLite takes a quoted name that is no column for a string.
    named = ", ".join(f'{table.name}."{name}"' for name in columns)
    return f"SELECT {named} FROM {table.name} {tail}"


@functools.cache
def _insert(table: Table, columns: tuple[str, ...]) -> str:
    values = ", ".join(f":{name}" for name in columns)
    return f"INSERT INTO {table.name} ({_quoted(columns)}) VALUES ({values})"


@functools.cache
def _upsert(table: Table, columns: tuple[str, ...]) -> str:
    changes = ", ".join(f'"{name}" = excluded."{name}"' for name in columns if name not in table.key)
    return f"{_insert(table, columns)} ON CONFLICT ({_quoted(table.key)}) DO UPDATE SET {changes}"


@functools.cache
def _update(table: Table, columns: tuple[str, ...], condition: str) -> str:
    changes = ", ".join(f'"{name}" = :new_{name}' for name in columns)
    return f"UPDATE {table.name} SET {changes} WHERE {condition}"


def _quoted(columns: Sequence[str]) -> str:
    # "end" is a word of SQL.
    return ", ".join(f'"{name}"' for name in columns)
