"""The Spark part of an operation: replays recorded batches with a no-op sink, or runs into a different output."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from pyspark.errors import StreamingQueryException

from slackwater.checkpoint.logs import read_logs
from slackwater.core.commands import command
from slackwater.core.errors import Refused, SlackwaterError, StreamFailed, UsageError
from slackwater.core.program import QueryProfile, Trigger
from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.core.sink import BackfillDirectory
from slackwater.ledger.recording.log_copier import LogCopier, copy_new
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.contributing import Code
from slackwater.operations.plan.targets import WantedPosition
from slackwater.runtime.loader import LoadedPipeline, digest
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.program.code_reach import Environment, environment_before, of_workers, restore_environment
from slackwater.runtime.program.profile import profile_of
from slackwater.runtime.program.program import give_variables
from slackwater.runtime.program.unsupported import check_left_out, strict_sources
from slackwater.runtime.replay.positions import compact_interval, resolve, rows_served, served_positions
from slackwater.runtime.replay.replay_query import ReplayQuery
from slackwater.runtime.run.before_start import program_json, record_program
from slackwater.runtime.run.failures import RunFailure, classify
from slackwater.runtime.run.listener import ProgressRecorder, make_listener
from slackwater.runtime.run.no_data_batch import check_reads_all
from slackwater.runtime.run.query import BuiltStream, build, write_context
from slackwater.runtime.run.stream_run import QueryRun, RunServices
from slackwater.runtime.session import SessionOptions, spark_version
from slackwater.runtime.session.session import driver_jvm_pid, start_session
from slackwater.runtime.session.settings import VARIABLES, replace_settings, session_of, settings_after, with_settings
from slackwater.sinks.common.contract import Output, Sink
from slackwater.sinks.common.registry import is_same_sink, open_output
from slackwater.sinks.files.backfill_output import directory_sink
from slackwater.sources.common.contract import Position, Served, SourceRange
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
QUIET = {
    # The maintenance of a finished replay step would touch the files that the next step has renamed.
    "spark.sql.streaming.stateStore.maintenanceInterval": "3600s"
}
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.StateStore$"
LOADED_BYTES_MAX = 1 << 30
"""The most bytes of state that executors may load for replayed batches before they are restarted."""


class SparkReplayer:
    def __init__(
        self,
        loaded: LoadedPipeline,
        stream: str,
        session: SessionOptions,
        *,
        home: Path | str,
        say: Callable[[str], None],
        on_jvm: Callable[[int], None],
        recorded: Mapping[str, str] | None = None,
    ) -> None:
        self._loaded = loaded
        self._stream = stream
        self._session = replace(session, settings={**session.settings, **QUIET})
        self._home = home
        self._say = say
        self._on_jvm = on_jvm
        self._spark: SparkSession | None = None
        self._recorded = recorded or {}
        self._present_settings: Mapping[str, str] = {}
        self._environment: Environment | None = None
        self._built: BuiltStream | None = None
        self._built_under: Mapping[str, str] = {}
        self._profile: QueryProfile | None = None
        self._loaded_bytes = 0
        self._query: ReplayQuery | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._spark is not None:
            spark, query = self._spark, self._query
            self._spark = self._built = self._query = None
            if query is not None:
                query.end()
            if self._environment is not None:
                restore_environment(spark, self._environment)
            spark.stop()
            self._loaded_bytes = 0

    @property
    def sink_written(self) -> Mapping[str, str] | None:
        """The output of the program that starts the query; ``None`` for a pipeline file."""
        return self._definition().sink.identity() if self._loaded.runs_itself else None

    def writes_to(self, sink: Mapping[str, str]) -> bool:
        written = self.sink_written
        return written is not None and is_same_sink(sink, written)

    @property
    def output_mode(self) -> str:
        return self._definition().output_mode

    def code(self) -> Code:
        return Code(digest(self._loaded.reference), self.profile().rows_digest, self._open().version)

    def served_positions(self) -> Mapping[str, Served]:
        return served_positions(self.frame())

    def rows_served(self, span: SourceRange, was: Mapping[str, str]) -> int | None:
        return rows_served(self.frame(), span, was)

    def positions(self, wanted: WantedPosition) -> Mapping[str, Position]:
        return resolve(self.frame(), wanted)

    def profile(self) -> QueryProfile:
        if self._profile is None:
            built = self._build(self._open())
            code = built.reach.code if built.reach is not None else None
            self._profile = profile_of(built.frame, code, built.definition.output_mode)
        return self._profile

    def program(self, settings: Mapping[str, str] | None = None) -> Mapping[str, object] | None:
        return program_json(self._build(self._open(), settings).program)

    def frame(self) -> DataFrame:
        return self._build(self._open()).frame

    def compact_interval(self) -> int:
        return compact_interval(self._open())

    def run_pending(
        self,
        checkpoint: str,
        *,
        changelog: bool,
        settings: Mapping[str, str] | None = None,
        more: bool = False,
        again: bool = False,
    ) -> tuple[int, int]:
        """Run the pending batch. Raises StreamFailed.

        ``more``: keep the query for the next batch. ``again``: do not reuse a query that has run the batch, as its
        state is later.
        """
        if again:
            self._end_query()
        built = self._build(self._open(), settings)
        if self._query is None or not self._query.run_next(built, checkpoint):
            self._end_query()
            # With much state on executors that has ended the application, too.
            spark = self._open()
            # The empty base of a rebuild needs a zip of its state: with changelogs RocksDB writes that only later.
            with with_settings(spark, {} if changelog else {CHANGELOG: "false"}):
                built = self._build(spark, settings)
                with strict_sources(built.frame, self._stream):
                    self._query = ReplayQuery(built, checkpoint, more=more)
                    self._wait(self._query)
        else:
            self._wait(self._query)
        progress = self._query.query.lastProgress
        if not (more and self._query.waits):
            self._end_query()
        return (-1, 0) if progress is None else (int(progress["batchId"]), int(progress["numInputRows"]))

    def _wait(self, query: ReplayQuery) -> None:
        try:
            query.wait()
        except StreamingQueryException as error:
            self._query = None
            failure = classify(error)
            failed = StreamFailed(
                "replay-failed",
                f"A replayed batch of stream {self._stream} fails: {failure.reason}",
                where=failure.place,
                # Spark's own advice, failOnDataLoss=false, is not followed in a replay.
                hint="restore the source's data; nothing in use was changed"
                if failure.code == "data-loss"
                else "remove the cause, then apply the plan again; nothing in use was changed",
            )
            if failure.traceback:
                failed.add_note(failure.traceback)
            raise failed from error

    def _end_query(self) -> None:
        query, spark = self._query, self._spark
        self._query = None
        if query is None or spark is None:
            return
        # Read first: afterwards the JVM has released the query.
        progress = query.query.lastProgress
        query.end()
        if progress is None:
            return
        # The state of an ended query is unloaded here, which otherwise only Spark's maintenance does.
        if bool(spark.sparkContext._jsc.isLocal()):
            jvm: Any = spark.sparkContext._jvm
            getattr(getattr(jvm, STATE_STORE), "MODULE$").stop()
            return
        # State on executors is unloaded at once only by ending them.
        self._loaded_bytes += sum(int(one["memoryUsedBytes"]) for one in progress["stateOperators"])
        if self._loaded_bytes > LOADED_BYTES_MAX:
            self.close()

    def run_staged(self, operation: Operation, generation: GenerationRecord) -> None:
        """Run into the staged output until caught up. Raises StreamFailed, or Refused if nothing can be staged."""
        spark = self._open()
        # State is replayed no more: its maintenance may run as in any other operation.
        for name in QUIET:
            spark.conf.unset(name)
        built = self._build(spark)
        sink, stream = built.definition.sink, operation.stream
        staged = sink.staged(operation.plan.id)
        # A program started from elsewhere would fill another directory's staged output.
        if stream.is_watched and not is_same_sink(stream.sink, sink.identity()):
            raise Refused(
                "swap-unsupported",
                "The program writes to a different output than the one being replaced",
                where=f"stream {stream.full_name}",
                expected=stream.sink.get("path"),
                found=sink.identity().get("path"),
                hint="start the program from its usual directory",
            )
        checkpoint = open_read_store(generation.location)
        # The check that follows compares the ledger's entries of this checkpoint with those of older ones.
        copy_new(operation.ledger, stream.full_name, generation.number, checkpoint)
        check_left_out(operation.ledger, generation, read_logs(checkpoint).planned, built.frame)
        check_reads_all(stream.full_name, built.frame)
        # Not the log of the staged output: it names files that are elsewhere after the swap.
        failure = self._run(operation, generation, "available-now", sink=staged)
        if failure is not None:
            raise StreamFailed(
                "staged-run-failed",
                f"The query of stream {stream.full_name} fails: {failure.reason}",
                where=failure.place,
                hint="correct the pipeline, then plan again",
            )

    def run_backfill(self, operation: Operation, generation: GenerationRecord) -> None:
        """Run only the planned batch, into the stream's output. Raises StreamFailed."""
        failure = self._run(operation, generation, "once", log_of=open_output(operation.stream.sink))
        if failure is not None:
            undo = command("undo", operation.plan.id, "--yes")
            raise _backfill_failed(operation.stream, failure, f"go back, correct the pipeline, then plan again: {undo}")

    def run_into_directory(self, operation: Operation, generation: GenerationRecord, output: BackfillDirectory) -> None:
        """Run only the planned batch, into a backfill directory. Raises StreamFailed."""
        # The ledger has the log of the stream's own output.
        sink = directory_sink(self._build(self._open()).definition.sink, output)
        failure = self._run(operation, generation, "once", sink=sink)
        if failure is not None:
            raise _backfill_failed(operation.stream, failure, "correct the pipeline, then plan again")

    def _run(
        self,
        operation: Operation,
        generation: GenerationRecord,
        trigger: Literal["available-now", "once"],
        *,
        sink: Sink | None = None,
        log_of: Output | None = None,
    ) -> RunFailure | None:
        spark = self._open()
        built = self._build(spark)
        if sink is not None:
            built = replace(built, definition=replace(built.definition, sink=sink))
        recorder = ProgressRecorder(operation.ledger)
        spark.streams.addListener(listener := make_listener(recorder.put))
        try:
            services = RunServices(operation.home, operation.ledger, recorder, spark_version(), 0, self._say)
            return _watch(services, built, operation, generation, Trigger(trigger), log_of=log_of)
        finally:
            spark.streams.removeListener(listener)
            recorder.close()

    def _open(self) -> SparkSession:
        if self._spark is None:
            spark = start_session(self._session, self._say)
            # First of all: after a kill nothing but the lease shows which JVM may still write.
            self._on_jvm(driver_jvm_pid(spark))
            try:
                self._spark = session_of(spark, self._definition())
            except SlackwaterError:
                spark.stop()
                raise
            # Read before any batch is replayed: each replay sets the settings of its own run in this session.
            self._present_settings = settings_after(self._spark, self._recorded)
            self._environment = environment_before(self._spark)
        return self._spark

    def _build(self, spark: SparkSession, settings: Mapping[str, str] | None = None) -> BuiltStream:
        wanted = self._present_settings if settings is None else settings
        if self._built is None or self._built_under != wanted:
            if self._environment is not None:
                restore_environment(spark, self._environment)
            replace_settings(spark, wanted)
            # The user's function is called again: time zone and ANSI mode are resolved when a DataFrame is analysed.
            self._built = build(spark, self._loaded, self._definition(), self._home)
            if any(name.startswith(VARIABLES) for name in {*wanted, *self._built_under}):
                give_variables(self._built.frame, of_workers(spark, wanted))
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


POLL_S = 0.2


def _backfill_failed(stream: StreamRecord, failure: RunFailure, hint: str) -> StreamFailed:
    return StreamFailed(
        "backfill-failed",
        f"The batch of the backfill of stream {stream.full_name} fails: {failure.reason}",
        where=failure.place,
        hint=hint,
    )


def _watch(
    services: RunServices,
    built: BuiltStream,
    operation: Operation,
    generation: GenerationRecord,
    trigger: Trigger,
    *,
    log_of: Output | None,
) -> RunFailure | None:
    checkpoint = open_read_store(generation.location)
    stream = operation.stream
    context = write_context(services.ledger, stream, operation.epoch, read_logs(checkpoint).planned, built)
    built.definition.sink.check(built.frame, context)
    # Before the query starts, so that no kill leaves state whose program is unknown.
    record_program(services.home, services.ledger, generation, built)
    copier = LogCopier(services.ledger, stream.full_name, generation.number, checkpoint, log_of)
    active = QueryRun(services, generation, built, copier, trigger=trigger, context=context)
    try:
        while active.query.isActive:
            active.record_stores()
            time.sleep(POLL_S)
    except BaseException:
        active.query.stop()
        active.end("interrupted")
        raise
    error = active.query.exception()
    failure = classify(error) if error is not None else None
    active.end("failed" if failure else "finished", failure)
    return failure
