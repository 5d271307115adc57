"""Runs recorded batches again with the user's own query and a no-op sink: the replayer of a rebuild."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from slackwater.apply.replayer import OperationRun, Replayed
from slackwater.errors import StreamFailed, UsageError
from slackwater.formats.compactible import DEFAULT_INTERVAL
from slackwater.model.profile import QueryProfile
from slackwater.model.sink import SideOutput
from slackwater.plan.contributing import Code
from slackwater.runtime import failures
from slackwater.runtime.kafka_offsets import earliest_offsets
from slackwater.runtime.loader import LoadedPipeline, digest
from slackwater.runtime.operation_run import run_aside, run_backfill, run_staged
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.profile import profile_of
from slackwater.runtime.query import BuiltStream, build, start_without_output
from slackwater.runtime.session import SessionOptions, driver_jvm_pid, start_session
from slackwater.runtime.sql_settings import effective_settings, replace_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
COMPACT_INTERVAL = "spark.sql.streaming.fileSource.log.compactInterval"
QUIET = {
    # The maintenance of a finished replay step would touch the files that the next step has renamed.
    "spark.sql.streaming.stateStore.maintenanceInterval": "3600s",
}


class SparkReplayer:
    """Starts Spark when it is first needed; a context manager that stops it."""

    def __init__(
        self,
        loaded: LoadedPipeline,
        stream: str,
        session: SessionOptions,
        *,
        home: Path,
        say: Callable[[str], None],
        on_jvm: Callable[[int], None],
    ) -> None:
        self._loaded = loaded
        self._stream = stream
        self._session = replace(session, settings={**session.settings, **QUIET})
        self._home = home
        self._say = say
        self._on_jvm = on_jvm
        self._spark: SparkSession | None = None
        self._present_settings: Mapping[str, str] = {}
        self._built: BuiltStream | None = None
        self._built_under: Mapping[str, str] = {}
        self._profile: QueryProfile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the session, if one was started."""
        if self._spark is not None:
            self._spark.stop()
            self._spark = self._built = None

    def code(self) -> Code:
        """The pipeline file that was loaded, and which rows its query reads."""
        return Code(digest(self._loaded.reference), self.profile().rows_digest)

    def earliest_offsets(self) -> Mapping[str, str]:
        """The oldest offsets that Kafka still serves, by the source's place in the query."""
        return earliest_offsets(self.frame())

    def profile(self) -> QueryProfile:
        """What the query's plan shows, under the present session's settings."""
        if self._profile is None:
            self._profile = profile_of(self.frame())
        return self._profile

    def frame(self) -> DataFrame:
        """The streaming DataFrame of the query."""
        return self._build(self._open()).frame

    def compact_interval(self) -> int:
        """The session's compaction setting for file source logs."""
        return int(self._open().conf.get(COMPACT_INTERVAL, str(DEFAULT_INTERVAL)) or DEFAULT_INTERVAL)

    def run_pending(self, checkpoint: str, *, changelog: bool, settings: Mapping[str, str] | None = None) -> Replayed:
        """Run the one planned batch under these SQL settings. Raises StreamFailed where it fails."""
        from pyspark.errors import StreamingQueryException  # noqa: PLC0415 - heavy; only a replay pays for it

        spark = self._open()
        built = self._build(spark, settings)
        before = spark.conf.get(CHANGELOG, None)
        if not changelog:
            spark.conf.set(CHANGELOG, "false")
        query = start_without_output(built, checkpoint)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            failure = failures.classify(error)
            failed = StreamFailed(
                "replay-failed",
                f"A replayed batch of stream {self._stream} fails: {failure.reason}",
                where=failure.place,
            )
            if failure.traceback:
                failed.add_note(failure.traceback)
            raise failed from error
        finally:
            _restore(spark, before)
        progress = query.lastProgress
        if progress is None:
            return Replayed(-1, 0)
        return Replayed(int(progress["batchId"]), int(progress["numInputRows"]))

    def run_staged(self, run: OperationRun) -> None:
        """Run the query into the staged output until it has caught up. Raises StreamFailed where it fails."""
        spark = self._open()
        # State is replayed no more: its maintenance may run as in any other run.
        for name in QUIET:
            spark.conf.unset(name)
        run_staged(spark, self._build(spark), run, self._say)

    def run_backfill(self, run: OperationRun) -> None:
        """Run the one planned batch into the output of the stream. Raises StreamFailed where it fails."""
        spark = self._open()
        run_backfill(spark, self._build(spark), run, self._say)

    def run_aside(self, run: OperationRun, output: SideOutput) -> None:
        """Run the one planned batch into a side output. Raises StreamFailed where it fails."""
        spark = self._open()
        run_aside(spark, self._build(spark), run, output, self._say)

    def _open(self) -> SparkSession:
        if self._spark is None:
            self._say("starting Spark")
            self._spark = start_session(self._session, self._say)
            self._on_jvm(driver_jvm_pid(self._spark))
            self._present_settings = effective_settings(self._spark)
        return self._spark

    def _build(self, spark: SparkSession, settings: Mapping[str, str] | None = None) -> BuiltStream:
        """The query, analysed under these settings; ``None`` means those of the present session."""
        wanted = self._present_settings if settings is None else settings
        if self._built is None or self._built_under != wanted:
            replace_settings(spark, wanted)
            # The user's function is called again: time zone and ANSI mode are resolved when a DataFrame is analysed.
            self._built = build(spark, self._loaded, self._definition(), self._home)
            self._built_under = dict(wanted)
        return self._built

    def _definition(self) -> StreamDefinition:
        definition = self._loaded.pipeline.streams.get(self._stream)
        if definition is None:
            raise UsageError(
                "stream-undefined",
                f"The pipeline file no longer defines stream {self._stream}",
                where=self._loaded.reference,
                hint="give the file that does with --pipeline",
            )
        return definition


def _restore(spark: SparkSession, before: str | None) -> None:
    if before is None:
        spark.conf.unset(CHANGELOG)
    else:
        spark.conf.set(CHANGELOG, before)
