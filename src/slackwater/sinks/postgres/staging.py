"""Stages a task's rows in its own table. Pickled by value: executors need only adbc and pyarrow.

The name has a uuid from inside the task. Spark's attempt ids restart with every driver: a retried batch could publish a
different driver's rows.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
import pyarrow.compute as pc

_ESCAPED_ZERO = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""A zero byte escaped in JSON, but not behind an escaped backslash, which makes it the plain letters u0000."""

RESULT = "staged STRING, row_count LONG"
"""The schema of a task's result."""


@dataclass(frozen=True)
class Staging:
    """``columns`` are declarations; ``texts`` and ``json`` are positions."""

    conninfo: str
    schema: str
    prefix: str
    columns: tuple[str, ...]
    names: tuple[str, ...]
    texts: tuple[int, ...]
    json: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Staging({self.schema}.{self.prefix}...)"


def stager(staging: Staging) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """For ``mapInArrow``: stages the partition, returns table name and row count."""

    def stage(batches: Iterable[Any]) -> Iterator[Any]:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is not None:
            table = staging.prefix + uuid.uuid4().hex
            rows = CheckedRows(staging, itertools.chain([first], filled))
            reader = pa.RecordBatchReader.from_batches(first.schema, rows)
            schema = '"' + staging.schema.replace('"', '""') + '"'
            try:
                with adbc.connect(staging.conninfo) as connection, connection.cursor() as cursor:
                    # A logged table would write each row to the write-ahead log twice; rows that a crash loses are
                    # missed in ``Publication``, which counts them.
                    cursor.execute(f"CREATE UNLOGGED TABLE {schema}.{table} ({', '.join(staging.columns)})")
                    cursor.adbc_ingest(table, reader, mode="append", db_schema_name=staging.schema)
                    connection.commit()
            except Exception as error:
                # What fails while the driver reads rows reaches us as an error of Arrow, without its text.
                if rows.problem is not None:
                    raise ValueError(rows.problem) from error
                raise
            yield pa.record_batch({"staged": pa.array([table]), "row_count": pa.array([rows.count], pa.int64())})

    return stage


class CheckedRows:
    """Iterates over batches, counts rows and rejects zero bytes in strings."""

    def __init__(self, staging: Staging, batches: Iterable[Any]) -> None:
        self.count = 0
        self.problem: str | None = None
        self._staging = staging
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            for place in self._staging.texts:
                if _has_zero(batch.column(place), json=place in self._staging.json):
                    self.problem = f"[slackwater sink-zero-byte] in column {self._staging.names[place]}"
                    raise ValueError(self.problem)
            self.count += batch.num_rows
            yield batch


def _has_zero(column: Any, *, json: bool) -> bool:
    """Return whether strings or arrays of strings contain zero bytes; JSON has them escaped."""
    strings = column.flatten() if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) else column
    found = pc.match_substring(strings, "\\u0000" if json else "\0")
    if not pc.any(found).as_py():
        return False
    return not json or any(_ESCAPED_ZERO.search(text) for text in strings.filter(found).to_pylist())
