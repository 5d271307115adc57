"""Publishes staged tables in the batch's transaction, and drops them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection

from slackwater.sinks.common.database.marker import Staged, lost
from slackwater.sinks.postgres.table import BATCH_COLUMN, PostgresName, count, literal, quoted, run

Mode = Literal["insert", "upsert", "replace"]


@dataclass(frozen=True, slots=True)
class Publication:
    table: PostgresName
    mode: Mode
    keys: tuple[str, ...]
    filled: Mapping[str, str]
    batch_column: bool = False

    def publish(self, connection: Connection, staged: Sequence[Staged], batch: int, where: str) -> None:
        """Publish and drop staged tables. Raises StreamFailed if rows are lost."""
        if self.mode == "replace":
            # Not TRUNCATE: it waits for all readers, and shows an empty table to those with an older snapshot.
            run(connection, f"DELETE FROM {self.table.quoted}")
        for statement, rows in self._inserts(staged, batch):
            # A trigger or a rule of the table may take other rows than it is given, as may keys without other columns.
            if count(connection, statement) != rows:
                self._check(connection, staged, where)
        for one in staged:
            run(connection, f"DROP TABLE {self.table.next_to(one.table).quoted}")

    def _check(self, connection: Connection, staged: Sequence[Staged], where: str) -> None:
        for one in staged:
            found = int(run(connection, f"SELECT count(*) FROM {self.table.next_to(one.table).quoted}")[0][0])
            if found != one.rows:
                raise lost(where, one.rows, found)

    def _inserts(self, staged: Sequence[Staged], batch: int) -> list[tuple[str, int]]:
        """Statements with the number of rows each must find."""
        filled = dict(self.filled) | ({BATCH_COLUMN: str(batch)} if self.batch_column else {})
        into = f"INSERT INTO {self.table.quoted} ({', '.join(quoted(name) for name in filled)})"
        select = ", ".join(filled.values())
        selects = [f"SELECT {select} FROM {self.table.next_to(one.table).quoted}" for one in staged]
        if self.mode == "upsert" and selects:
            # One statement for all: only so the server sees a key that two tasks staged.
            return [(f"{into} {' UNION ALL '.join(selects)} {self._on_conflict()}", sum(one.rows for one in staged))]
        return [(f"{into} {each}", one.rows) for each, one in zip(selects, staged, strict=True)]

    def _on_conflict(self) -> str:
        others = [name for name in self.filled if name not in self.keys]
        found = f"ON CONFLICT ({', '.join(quoted(key) for key in self.keys)}) DO "
        if not others:
            return found + "NOTHING"
        return found + "UPDATE SET " + ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)


def drop_staged(connection: Connection, table: PostgresName, staged: Sequence[str]) -> None:
    for name in staged:
        run(connection, f"DROP TABLE IF EXISTS {table.next_to(name).quoted}")


def drop_orphans(connection: Connection, table: PostgresName, stream_id: str) -> None:
    rows = run(
        connection,
        f"SELECT tablename FROM pg_tables WHERE schemaname = {literal(table.schema)} "
        f"AND starts_with(tablename::text, {literal(table.staged_prefix(stream_id))})",
    )
    drop_staged(connection, table, [row[0] for row in rows])
