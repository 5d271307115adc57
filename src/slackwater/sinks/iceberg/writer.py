"""Creates and checks an Iceberg table, and writes each batch: an invisible snapshot, then published with its number.

Versions are committed through the catalog. Iceberg's ``TableOperations.commit`` compares and swaps all metadata, so a
check on a version holds for the next: no batch is published twice, or by a replaced run.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from slackwater.core.errors import PipelineError, Refused, StreamFailed
from slackwater.core.masking import mask
from slackwater.core.sink import WriteContext
from slackwater.sinks.common.batch_function import backquoted, run_without_output, session_settings
from slackwater.sinks.common.changes import absent
from slackwater.sinks.common.directory import OWNER_FILE, fenced
from slackwater.sinks.common.spark_tables import found_in, merge, table_schema
from slackwater.sinks.iceberg.metadata import (
    FOLDER,
    MAIN,
    PROPERTY,
    Metadata,
    TableMark,
    marker,
    parse,
    property_of,
    written,
)
from slackwater.sinks.iceberg.names import CATALOG_CLASS
from slackwater.sinks.iceberg.output import IcebergOutput
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from slackwater.sinks.iceberg.sink import IcebergSink


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Raises StreamFailed (``iceberg-unreachable``) if Spark cannot read the table or catalog."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise StreamFailed(
            "iceberg-unreachable",
            f"Spark cannot read the Iceberg table: {reason_of(error)}",
            where=where,
            hint="check that its store and catalog are reachable with the settings under [spark] in slackwater.toml",
        ) from error


def reason_of(error: Any) -> str:
    thrown = getattr(error, "java_exception", None)
    message = str(thrown.getMessage()) if thrown is not None else str(error)
    return mask((message.splitlines() or [type(error).__name__])[0])


WAP = "write.wap.enabled"
"""The table property that lets a session stage its writes under ``spark.wap.id``."""
ATTEMPTS = 20
"""How many commits of other writers a commit may follow before it fails."""


class Publisher:
    """A table's branch as seen by a run. ``table`` is for SQL."""

    def __init__(self, session: SparkSession, table: str, context: WriteContext, branch: str = MAIN) -> None:
        self._packages = cast("Any", session.sparkContext._jvm)
        self._table = table
        self._branch = branch
        self._context = context
        iceberg: Any = self._packages.org.apache.iceberg
        self._parser: Any = iceberg.TableMetadataParser
        with reading(table):
            loaded: Any = iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, table)
            self._operations: Any = loaded.operations()
        self._base: Any = None

    def refresh(self) -> Metadata:
        """Read the branch's newest version.

        Raises Refused: ``sink-owned``, ``sink-fenced`` for a later run, ``staged-absent`` if an operation's branch was
        swapped or discarded.
        """
        with reading(self._table):
            self._base = self._operations.refresh()
        metadata = self._parsed(self._base)
        if self._branch not in {MAIN, *metadata.branches}:
            raise absent(self._table, self._branch, "no such branch")
        mark = metadata.mark
        if mark is not None and mark.stream != self._context.stream_id:
            raise Refused(
                "sink-owned",
                f"Another stream writes to the output of stream {self._context.stream}: it would skip batches of this "
                "one",
                where=self._table,
                expected=f"stream id {self._context.stream_id}",
                found=f"stream id {mark.stream}",
                hint="give the stream a table of its own",
            )
        if mark is not None and mark.epoch > self._context.epoch:
            remedy = f"ALTER TABLE {self._table} UNSET TBLPROPERTIES ('{PROPERTY}')"
            raise fenced(mark.epoch, self._table, self._context, remedy)
        return metadata

    def written(self, metadata: Metadata) -> int:
        return written(metadata, self._older(), self._context.stream_id)

    def begin_epoch(self) -> None:
        """Refuse runs with lower epochs, and enable staging. Raises Refused."""
        for _ in range(ATTEMPTS):
            metadata = self.refresh()
            fenced = metadata.mark is not None and metadata.mark.epoch == self._context.epoch
            if fenced and metadata.properties.get(WAP) == "true":
                return
            if self._commit(metadata.current, self.written(metadata), metadata):
                return
        raise self._busy()

    def publish(self, before: Metadata, batch: int, marker: str, *, has_rows: bool) -> None:
        """Publish unless rows changed since ``before``.

        Raises StreamFailed (``iceberg-conflict``) for foreign rows or a removed snapshot; Refused as ``refresh``.
        """
        for _ in range(ATTEMPTS):
            metadata = self.refresh()
            staged = metadata.staged(marker)
            # A staged snapshot has the files of its parent, so that publishing it after another snapshot would take out
            # the rows that the other snapshot has added.
            moved = staged is not None and staged.parent != before.current
            if moved or metadata.current != before.current or self.written(metadata) >= batch:
                raise StreamFailed(
                    "iceberg-conflict",
                    f"Another writer has committed to the Iceberg table while batch {batch} was written; nothing of "
                    "the batch is visible",
                    where=self._table,
                    expected=f"snapshot {before.current}",
                    found=f"snapshot {metadata.current}",
                    hint="the batch is run again; let compaction and other writers run while the stream is stopped",
                )
            if staged is None and has_rows:
                raise StreamFailed(
                    "iceberg-conflict",
                    f"The staged snapshot of batch {batch} was removed from the Iceberg table before it was published",
                    where=self._table,
                    expected=f"a snapshot with wap.id={marker}",
                    found="none",
                    hint="the batch is run again; let expire_snapshots keep snapshots that are younger than a batch "
                    "takes",
                )
            # Iceberg makes no snapshot of a MERGE without rows: the number of the batch is all there is to record.
            current = staged.id if staged is not None else metadata.current
            if self._commit(current, batch, metadata):
                return
        raise self._busy()

    def _parsed(self, metadata: Any) -> Metadata:
        return parse(str(self._parser.toJson(metadata))).on(self._branch)

    def _older(self) -> Iterator[Metadata]:
        for entry in reversed(list(self._base.previousFiles())):
            try:
                found = self._parser.read(self._operations.io(), entry.file())
            except Py4JJavaError:
                continue  # write.metadata.delete-after-commit.enabled deletes them.
            yield self._parsed(found)

    def _commit(self, current: int | None, batch: int, metadata: Metadata) -> bool:
        mark = TableMark(self._context.stream_id, self._context.epoch, batch, current)
        builder = self._packages.org.apache.iceberg.TableMetadata.buildFrom(self._base)
        if current is not None and current != metadata.current:
            builder = builder.setBranchSnapshot(current, self._branch)
        properties = self._packages.java.util.HashMap()
        properties.put(property_of(self._branch), mark.render())
        # Without it Iceberg ignores ``spark.wap.id``, and the rows of a batch would be visible before its number.
        properties.put(WAP, "true")
        try:
            self._operations.commit(self._base, builder.setProperties(properties).build())
        except Py4JJavaError as error:
            name = str(error.java_exception.getClass().getSimpleName())
            # Only this class says that nothing was committed; CommitStateUnknownException and all others leave it open.
            if name == "CommitFailedException":
                return False
            raise StreamFailed(
                "iceberg-commit",
                f"It is unknown if the commit to the Iceberg table succeeded: {reason_of(error)}",
                where=self._table,
                hint="start the stream again: it checks in the table if the batch was committed",
            ) from error
        return True

    def _busy(self) -> StreamFailed:
        return StreamFailed(
            "iceberg-busy",
            f"Other writers keep committing to the Iceberg table: none of {ATTEMPTS} attempts succeeded",
            where=self._table,
            hint="the batch is run again; let other writers of the table run while the stream is stopped",
        )


_AS_INT = re.compile(r"\b(tinyint|smallint)\b")
_AS_STRING = re.compile(r"\b(var)?char\(\d+\)")


WAP_ID = "spark.wap.id"
"""With this setting Iceberg writes a session's commits into a snapshot that does not become current."""


class IcebergSparkTable:
    """A sink's table for Spark and the query."""

    def __init__(self, sink: IcebergSink) -> None:
        self.sink = sink
        self.name = sink.name
        self.location = sink.location

    def create(self, frame: DataFrame, partition_by: tuple[str, ...]) -> None:
        session = frame.sparkSession
        self.name.register(session)
        if self.sink.path:
            if not open_read_store(self.location).traits.atomic_rename:
                raise PipelineError(
                    "iceberg-store",
                    "An Iceberg table cannot be in a directory of an object store: two writers could replace each "
                    "other's commits",
                    where=self.location,
                    expected="a local path or HDFS, where a rename is one step",
                    hint='use a table of a catalog that commits: sinks.iceberg("catalog.db.table")',
                )
            if IcebergOutput(self.location).exists:
                return
            names = found_in(self.location, {OWNER_FILE})
            if FOLDER in names:
                raise _foreign(self.location, "a table whose metadata are those of a catalog, or damaged")
            if names:
                raise _foreign(self.location, ", ".join(names[:3]))
        else:
            catalog = self.location.split(".", 1)[0].strip("`")
            key = f"spark.sql.catalog.{catalog}"
            if session.conf.get(key, None) is None:
                raise PipelineError(
                    "iceberg-catalog",
                    f"Spark has no catalog named {catalog}",
                    where=self.location,
                    expected=f"{key}={CATALOG_CLASS}, with its type and address",
                    found="no value",
                    hint=f'set "{key}" and the settings below it under [spark] in slackwater.toml; '
                    f'sinks.iceberg("./{self.location}") is a directory',
                )
            with reading(self.location):
                exists = session.catalog.tableExists(self.location)
            if exists:
                return
        writer = session.createDataFrame([], table_schema(frame.schema)).writeTo(self.name.sql).using("iceberg")
        if partition_by:
            writer = writer.partitionedBy(*(F.col(backquoted(column)) for column in partition_by))
        try:
            writer.create()
        except (PySparkException, Py4JJavaError) as error:
            raise PipelineError(
                "iceberg-create",
                f"Spark cannot create the Iceberg table: {reason_of(error)}",
                where=self.location,
                hint="use column types that Iceberg supports, and a location that Spark may write to",
            ) from error

    def check(self, frame: DataFrame, context: WriteContext) -> None:
        """Check the table, and refuse earlier runs.

        Raises PipelineError if rows do not fit, Refused for a foreign table.
        """
        publisher = Publisher(frame.sparkSession, self.name.sql, context, self.name.branch)
        metadata, partition_by = publisher.refresh(), context.partition_by
        specs = metadata.fields.get("partition-specs") or ()
        number = metadata.fields.get("default-spec-id")
        used = next((spec["fields"] for spec in specs if spec["spec-id"] == number), ())
        partitions = tuple(str(field["name"]) for field in used if field["transform"] != "void")
        if partition_by and partition_by != partitions:
            raise _rejected(metadata, "partitions", ", ".join(partitions) or "none", ", ".join(partition_by))
        absent = [key for key in self.sink.keys if key not in frame.columns]
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
        publisher.begin_epoch()

    def write(self, context: WriteContext, frame: DataFrame, batch: int) -> None:
        session = frame.sparkSession
        self.name.register(session)
        publisher = Publisher(session, self.name.sql, context, self.name.branch)
        before = publisher.refresh()
        newest = publisher.written(before)
        if newest < batch:
            staged = marker(context.stream_id, context.epoch, batch, uuid.uuid4().hex)
            has_rows = self.stage(context, frame, batch, staged)
            publisher.publish(before, batch, staged, has_rows=has_rows)
        elif batch <= context.planned:
            # Left out, the batch would be missing in Spark's watermark.
            run_without_output(frame)
        else:
            raise Refused(
                "iceberg-ahead",
                f"The table has batch {newest} of stream {context.stream} already, while the checkpoint has just "
                f"planned batch {batch}: other rows, which would be skipped",
                where=self.location,
                expected=f"batch {newest + 1}, or one that was planned before this run",
                found=f"batch {batch}",
                hint="the checkpoint was deleted, replaced or restored from a copy: restore the newest one, or give "
                "the stream a new table",
            )

    def stage(self, context: WriteContext, frame: DataFrame, batch: int, staged: str) -> bool:
        """Write an invisible snapshot marked ``staged``; returns whether it exists."""
        session = frame.sparkSession

        def run(statement: str) -> None:
            with session_settings(session, {WAP_ID: staged}):
                session.sql(statement)

        if self.sink.keys:
            return merge(frame, batch, run, table=self.name.target, keys=self.sink.keys, where=self.location)
        writer = frame.writeTo(self.name.target).options(**self.sink.options)
        with session_settings(session, {WAP_ID: staged}):
            if context.output_mode == "complete":
                writer.overwrite(F.lit(True))
            else:
                writer.append()
        return True


def _types(schema: StructType) -> dict[str, str]:
    found = {field.name.lower(): field.dataType.simpleString().lower() for field in schema}
    return {name: _AS_STRING.sub("string", _AS_INT.sub("int", kind)) for name, kind in found.items()}


def _foreign(location: str, found: str) -> PipelineError:
    return PipelineError(
        "iceberg-place",
        "The directory of the Iceberg sink contains something other than its Iceberg table",
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
