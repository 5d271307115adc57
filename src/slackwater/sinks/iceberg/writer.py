"""Creates and checks an Iceberg table, and writes each batch: an invisible snapshot, then published with its number."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import WriteContext
from slackwater.sinks.common.batch_function import backquoted, run_without_output, session_settings
from slackwater.sinks.common.owner import MARK
from slackwater.sinks.common.spark_tables import Merge, table_schema
from slackwater.sinks.iceberg.metadata import Metadata, marker
from slackwater.sinks.iceberg.names import CATALOG_CLASS, IcebergName
from slackwater.sinks.iceberg.output import IcebergOutput
from slackwater.sinks.iceberg.publishing import Publisher, creating, reading
from slackwater.sinks.iceberg.versions import FOLDER
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


_AS_INT = re.compile(r"\b(tinyint|smallint)\b")
_AS_STRING = re.compile(r"\b(var)?char\(\d+\)")


@dataclass(frozen=True, slots=True)
class IcebergSparkTable:
    """A sink's table for Spark and the query.

    ``location`` is its directory or catalog name.
    """

    name: IcebergName
    location: str
    in_directory: bool

    def create(self, frame: DataFrame, partition_by: tuple[str, ...]) -> None:
        session = frame.sparkSession
        self.name.register(session)
        if self.in_directory:
            _check_store(self.location)
            if IcebergOutput(self.location).exists:
                return
            _check_place(self.location)
        else:
            _check_catalog(session, self.location)
            with reading(self.location):
                exists = session.catalog.tableExists(self.location)
            if exists:
                return
        writer = session.createDataFrame([], table_schema(frame.schema)).writeTo(self.name.sql).using("iceberg")
        if partition_by:
            writer = writer.partitionedBy(*(F.col(backquoted(column)) for column in partition_by))
        with creating(self.location):
            writer.create()

    def check(self, frame: DataFrame, context: WriteContext, keys: tuple[str, ...]) -> None:
        """Check the table, and refuse earlier runs.

        Raises PipelineError if rows do not fit, Refused for a foreign table.
        """
        publisher = Publisher(frame.sparkSession, self.name.sql, context, self.name.branch)
        self._check_schema(frame, publisher.refresh(), context.partition_by, keys)
        publisher.begin_epoch()

    def _check_schema(
        self, frame: DataFrame, metadata: Metadata, partition_by: tuple[str, ...], keys: tuple[str, ...]
    ) -> None:
        partitions = _partitions(metadata.fields)
        if partition_by and partition_by != partitions:
            raise _rejected(metadata, "partitions", ", ".join(partitions) or "none", ", ".join(partition_by))
        absent = [key for key in keys if key not in frame.columns]
        if absent:
            raise _rejected(metadata, "keys", "columns of the query: " + ", ".join(frame.columns), ", ".join(absent))
        wanted, known = _types(frame.schema), _types(frame.sparkSession.table(self.name.sql).schema)
        if wanted != known:
            other = sorted(name for name in wanted.keys() | known.keys() if wanted.get(name) != known.get(name))
            raise _rejected(
                metadata,
                "columns",
                ", ".join(f"{name} {known.get(name, '(no such column)')}" for name in other),
                ", ".join(f"{name} {wanted.get(name, '(no such column)')}" for name in other),
            )


def _check_store(location: str) -> None:
    if not open_read_store(location).traits.atomic_rename:
        raise PipelineError(
            "iceberg-store",
            "An Iceberg table cannot be in a directory of an object store: two writers could replace each other's "
            "commits",
            where=location,
            expected="a local path or HDFS, where a rename is one step",
            hint='name a table of a catalog that commits: sinks.iceberg("catalog.db.table")',
        )


def _check_place(location: str) -> None:
    store = open_read_store(location)
    local = store.local_path("")
    if local is not None and Path(local).exists() and not Path(local).is_dir():
        raise _foreign(location, "a file")
    names = sorted(entry.name for entry in store.list() if entry.name != MARK and entry.name[0] != ".")
    if FOLDER in names:
        raise _foreign(location, "a table whose metadata are those of a catalog, or damaged")
    if names:
        raise _foreign(location, ", ".join(names[:3]))


def _check_catalog(session: SparkSession, table: str) -> None:
    catalog = table.split(".", 1)[0].strip("`")
    key = f"spark.sql.catalog.{catalog}"
    if session.conf.get(key, None) is None:
        raise PipelineError(
            "iceberg-catalog",
            f"Spark has no catalog named {catalog}",
            where=table,
            expected=f"{key}={CATALOG_CLASS}, with its type and address",
            found="no value",
            hint=f'set "{key}" and the settings below it under [spark] in slackwater.toml; sinks.iceberg("./{table}") '
            "is a directory",
        )


def _types(schema: StructType) -> dict[str, str]:
    found = {field.name.lower(): field.dataType.simpleString().lower() for field in schema}
    return {name: _AS_STRING.sub("string", _AS_INT.sub("int", kind)) for name, kind in found.items()}


def _partitions(fields: Mapping[str, Any]) -> tuple[str, ...]:
    specs = fields.get("partition-specs") or ()
    used = next((spec["fields"] for spec in specs if spec["spec-id"] == fields.get("default-spec-id")), ())
    return tuple(str(field["name"]) for field in used if field["transform"] != "void")


def _foreign(location: str, found: str) -> PipelineError:
    return PipelineError(
        "iceberg-place",
        "The directory of the Iceberg sink has something other than an Iceberg table of its own",
        where=location,
        expected="a table that Iceberg keeps in a directory (Hadoop catalog), an empty directory, or none",
        found=found,
        hint='give the sink a directory of its own, or name the table: sinks.iceberg("catalog.db.table")',
    )


def _rejected(metadata: Metadata, what: str, expected: str, found: str) -> PipelineError:
    return PipelineError(
        "iceberg-schema",
        f"The Iceberg table does not accept the rows of the query: other {what}",
        where=metadata.location,
        expected=expected,
        found=found,
        hint="change the query, or the table with ALTER TABLE",
    )


WAP_ID = "spark.wap.id"
"""With this setting Iceberg writes a session's commits into a snapshot that does not become current."""


@dataclass(frozen=True, slots=True)
class IcebergWriter:
    table: IcebergName
    where: str
    keys: tuple[str, ...]
    options: Mapping[str, str]
    context: WriteContext

    def write(self, frame: DataFrame, batch: int) -> None:
        session = frame.sparkSession
        self.table.register(session)
        publisher = Publisher(session, self.table.sql, self.context, self.table.branch)
        before = publisher.refresh()
        newest = publisher.written(before)
        if newest < batch:
            staged = marker(self.context.stream_id, self.context.epoch, batch, uuid.uuid4().hex)
            has_rows = self.stage(frame, batch, staged)
            publisher.publish(before, batch, staged, has_rows=has_rows)
        elif batch <= self.context.planned:
            # Left out, the batch would be missing in Spark's watermark.
            run_without_output(frame)
        else:
            raise self._ahead(batch, newest)

    def stage(self, frame: DataFrame, batch: int, staged: str) -> bool:
        """Write an invisible snapshot marked ``staged``; returns whether it exists."""
        session = frame.sparkSession

        def run(statement: str) -> None:
            with session_settings(session, {WAP_ID: staged}):
                session.sql(statement)

        if self.keys:
            return Merge(self.table.target, self.keys, self.where).write(frame, batch, run)
        writer = frame.writeTo(self.table.target).options(**self.options)
        with session_settings(session, {WAP_ID: staged}):
            if self.context.output_mode == "complete":
                writer.overwrite(F.lit(True))
            else:
                writer.append()
        return True

    def _ahead(self, batch: int, newest: int) -> Refused:
        return Refused(
            "iceberg-ahead",
            f"The table has batch {newest} of stream {self.context.stream} already, while the checkpoint has just "
            f"planned batch {batch}: other rows, which would be skipped",
            where=self.where,
            expected=f"batch {newest + 1}, or one that was planned before this run",
            found=f"batch {batch}",
            hint="the checkpoint was deleted, replaced or restored from a copy: restore the newest one, or give the "
            "stream a new table",
        )
