"""Commits Iceberg versions through the catalog: a run's fence, and staged batches; translates Spark's errors.

Iceberg's ``TableOperations.commit`` compares and swaps all metadata, so a check on a version holds for the next: no
batch is published twice, or by a replaced run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from slackwater.core.errors import PipelineError, Refused, StreamFailed
from slackwater.core.masking import mask
from slackwater.core.sink import WriteContext
from slackwater.sinks.common.changes import absent
from slackwater.sinks.iceberg.metadata import MAIN, PROPERTY, Metadata, TableMark, parse, property_of, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


@contextmanager
def creating(where: str) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise PipelineError(
            "iceberg-create",
            f"Spark cannot create the Iceberg table: {reason_of(error)}",
            where=where,
            hint="use column types that Iceberg has, and a place that Spark may write to",
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
        self._check_fence(metadata.mark)
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
                raise self._conflict(batch, before, metadata)
            if staged is None and has_rows:
                raise self._removed(batch, marker)
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
                f"Whether the commit to the Iceberg table was made is unknown: {reason_of(error)}",
                where=self._table,
                hint="start the stream again: it reads from the table whether the batch is there",
            ) from error
        return True

    def _check_fence(self, mark: TableMark | None) -> None:
        if mark is None:
            return
        if mark.stream != self._context.stream_id:
            raise Refused(
                "sink-owned",
                f"Another stream writes to the output of stream {self._context.stream}: it would skip batches of this "
                "one",
                where=self._table,
                expected=f"stream id {self._context.stream_id}",
                found=f"stream id {mark.stream}",
                hint="give the stream a table of its own",
            )
        if mark.epoch > self._context.epoch:
            raise Refused(
                "sink-fenced",
                f"A later run of stream {self._context.stream} has taken over its output: this run may no longer write",
                where=self._table,
                expected=f"epoch {mark.epoch} or later",
                found=f"epoch {self._context.epoch}",
                hint="stop this run; if no other run exists and the ledger was lost: ALTER TABLE ... UNSET "
                f"TBLPROPERTIES ('{PROPERTY}')",
            )

    def _removed(self, batch: int, marker: str) -> StreamFailed:
        return StreamFailed(
            "iceberg-conflict",
            f"The staged snapshot of batch {batch} was removed from the Iceberg table before it was published",
            where=self._table,
            expected=f"a snapshot with wap.id={marker}",
            found="none",
            hint="the batch is run again; let expire_snapshots keep snapshots that are younger than a batch takes",
        )

    def _conflict(self, batch: int, before: Metadata, now: Metadata) -> StreamFailed:
        return StreamFailed(
            "iceberg-conflict",
            f"Another writer has committed to the Iceberg table while batch {batch} was written; nothing of the batch "
            "is visible",
            where=self._table,
            expected=f"snapshot {before.current}",
            found=f"snapshot {now.current}",
            hint="the batch is run again; let compaction and other writers run while the stream is stopped",
        )

    def _busy(self) -> StreamFailed:
        return StreamFailed(
            "iceberg-busy",
            f"Other writers commit to the Iceberg table all the time: none of {ATTEMPTS} attempts succeeded",
            where=self._table,
            hint="the batch is run again; let other writers of the table run while the stream is stopped",
        )
