"""Tables that Spark writes: the schema of a new table, MERGE by keys, and batches of a table with a marker."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from slackwater.core.checkpoint import NONE_YET
from slackwater.core.errors import StreamFailed
from slackwater.core.sink import WriteContext
from slackwater.sinks.common.batch_function import backquoted, persisted, run_without_output
from slackwater.sinks.common.database import problem_of
from slackwater.sinks.common.marker import MarkedTarget
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_OF_SPARK = "spark."
"""The prefix of Spark's own column metadata: readers would inherit the query's watermark."""


def table_schema(schema: StructType) -> StructType:
    """The schema with nullable columns and without Spark's metadata."""
    return StructType(
        [
            StructField(
                field.name,
                field.dataType,
                nullable=True,
                metadata={key: value for key, value in field.metadata.items() if not key.startswith(_OF_SPARK)},
            )
            for field in schema
        ]
    )


def found_in(location: str, own: Collection[str]) -> list[str]:
    """The names in a table's directory that are neither hidden nor in ``own``; ``a file`` in place of a directory."""
    store = open_read_store(location)
    local = store.local_path("")
    if local is not None and Path(local).exists() and not Path(local).is_dir():
        return ["a file"]
    return sorted(entry.name for entry in store.list() if entry.name not in own and entry.name[0] != ".")


_COUNT = "slackwater_rows"


def merge(
    frame: DataFrame, batch: int, run: Callable[[str], None], *, table: str, keys: Sequence[str], where: str
) -> bool:
    """Execute by ``run`` a MERGE in which rows replace rows with equal keys; returns whether the batch has rows.

    ``table`` is for SQL, ``where`` for errors. Raises StreamFailed (``merge-keys``) for duplicate keys.
    """
    view = f"slackwater_{uuid.uuid4().hex}"
    # MERGE reads its source more than once; the query's state is computed once only.
    with persisted(frame):
        try:
            # MERGE inserts new keys twice, and refuses them only later.
            counted = frame.groupBy(*map(backquoted, keys)).agg(F.count(F.lit(1)).alias(_COUNT))
            most = counted.orderBy(F.desc(_COUNT)).first()
            if most is not None and most[_COUNT] > 1:
                raise StreamFailed(
                    "merge-keys",
                    f"Batch {batch} has several rows with the same key, so the row to keep is unknown",
                    where=where,
                    expected="one row for each value of " + ", ".join(keys),
                    found=f"{most[_COUNT]} rows with {', '.join(f'{key}={most[key]!r}' for key in keys)}",
                    hint="aggregate or deduplicate by the keys, or use all columns that make a row unique as keys",
                )
            has_rows = most is not None
            frame.createOrReplaceTempView(view)
            names = [backquoted(column) for column in frame.columns]
            # Null-safe: by ``=`` a null key would match no row, and each batch would insert another one.
            matches = " AND ".join(f"t.{key} <=> s.{key}" for key in map(backquoted, keys))
            clauses = (
                f"{table} t USING {view} s ON {matches}",
                f"WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = s.{name}' for name in names)}",
                f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)})",
                f"VALUES ({', '.join(f's.{name}' for name in names)})",
            )
            run(" ".join(("MERGE INTO", *clauses)))
        finally:
            frame.sparkSession.catalog.dropTempView(view)
    return has_rows


@dataclass
class MarkedWriter(ABC):
    """Writes a run's batches to a database: rows staged by tasks and the marker are published in a transaction."""

    target: MarkedTarget
    context: WriteContext
    published: int = field(default=NONE_YET, init=False)
    """The newest batch that the query published: the marker must not fall behind it."""

    def write(self, frame: DataFrame, batch: int) -> None:
        if self.target.is_written(self.context, batch):
            run_without_output(frame)
        else:
            self._write(frame, batch)

    @abstractmethod
    def _write(self, frame: DataFrame, batch: int) -> None: ...

    @contextmanager
    def _staging_failures(self) -> Iterator[None]:
        """Raises StreamFailed for a problem of the sink; other exceptions are of the user's query."""
        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            problem = problem_of(error)
            if problem.code == "sink-failed":
                raise
            raise problem.failed(self.target.location) from error

    def _advance(self, connection: Connection, batch: int) -> bool:
        return self.target.marker.advance(connection, self.context, batch, self.published)

    def _check_committed(self, batch: int, error: DBAPIError) -> None:
        """Raises StreamFailed: only a connection that is lost during COMMIT leaves open whether it was committed."""
        problem = problem_of(error)
        if problem.code != "sink-unreachable" or not self._was_committed(batch):
            raise problem.failed(self.target.location) from error

    def _was_committed(self, batch: int) -> bool:
        return self.target.is_written(self.context, batch)
