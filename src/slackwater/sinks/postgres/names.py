"""PostgreSQL names, never truncated by the server, and statements with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from slackwater.core.errors import PipelineError

if TYPE_CHECKING:
    from sqlalchemy import Connection


NAME_BYTES_MAX = 63
"""The server cuts longer names silently (NAMEDATALEN)."""
BATCH_COLUMN = "_slackwater_batch"


@dataclass(frozen=True, slots=True)
class TableName:
    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def quoted(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.table)}"

    def next_to(self, table: str) -> TableName:
        return TableName(self.schema, table)

    def staging(self, operation: str) -> TableName:
        known = sha256(f"{self}".encode()).hexdigest()[:8]
        return self.next_to(f"slackwater_swap_{re.sub('[^a-z0-9]+', '_', operation.lower())}_{known}")

    def staged_prefix(self, stream_id: str) -> str:
        """The prefix of a stream's staged tables; 32 characters follow."""
        return f"slackwater_stage_{sha256(f'{stream_id}/{self}'.encode()).hexdigest()[:12]}_"


def table_name(name: object) -> TableName:
    """The table's name, by default in schema ``public``. Raises PipelineError (``sink-table``)."""
    schema, dot, table = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    parts = (schema if dot else "public", table)
    if not all(fits(part) and part == part.strip() and "." not in part for part in parts):
        raise PipelineError(
            "sink-table",
            "The name of a table cannot be used",
            expected=f"TABLE or SCHEMA.TABLE without quotes, each at most {NAME_BYTES_MAX} bytes",
            found=repr(name),
        )
    return TableName(*parts)


def fits(name: str) -> bool:
    return 0 < len(name.encode(errors="replace")) <= NAME_BYTES_MAX and "\0" not in name


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def run(connection: Connection, statement: str) -> Sequence[Sequence[Any]]:
    # Without this option psycopg takes a % in a name for a parameter.
    result = connection.execution_options(no_parameters=True).exec_driver_sql(statement)
    return [tuple(row) for row in result] if result.returns_rows else []


def count(connection: Connection, statement: str) -> int:
    return connection.execution_options(no_parameters=True).exec_driver_sql(statement).rowcount
