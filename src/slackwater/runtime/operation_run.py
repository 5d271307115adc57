"""Runs a query as an action of an operation, recorded as any other run: into another output, or one batch more."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from slackwater.apply.replayer import OperationRun
from slackwater.checkpoint.logs import read_logs
from slackwater.errors import Refused, StreamFailed
from slackwater.model.sink import SideOutput, WriteContext
from slackwater.model.trigger import Trigger
from slackwater.recording.log_copier import LogCopier
from slackwater.runtime.failures import Failure, classify
from slackwater.runtime.listener import ProgressRecorder, make_listener
from slackwater.runtime.query import BuiltStream, QueryStart
from slackwater.runtime.query_run import QueryRun, RunServices
from slackwater.runtime.session import spark_version
from slackwater.sinks.contract import Output, Sink, Staged
from slackwater.sinks.registry import open_output
from slackwater.sinks.side_output import side_sink
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class _How:
    """The trigger, and the output whose own log is copied."""

    trigger: Literal["available-now", "once"]
    output: Output | None
    say: Callable[[str], None]


def run_staged(spark: SparkSession, built: BuiltStream, run: OperationRun, say: Callable[[str], None]) -> None:
    """Run the query until it has caught up. Raises StreamFailed where it fails, Refused where no output is staged."""
    definition = replace(built.definition, sink=_staged(built.definition.sink, run))
    # Not the log of the staged output: it names files that are elsewhere after the swap.
    failure = _run(spark, replace(built, definition=definition), run, _How("available-now", None, say))
    if failure is not None:
        raise StreamFailed(
            "staged-run-failed",
            f"The query of stream {run.stream.full_name} fails: {failure.reason}",
            where=failure.place,
            hint="correct the pipeline, then plan again",
        )


def run_backfill(spark: SparkSession, built: BuiltStream, run: OperationRun, say: Callable[[str], None]) -> None:
    """Run the batch that is planned, and no other, into the real output. Raises StreamFailed where it fails."""
    failure = _run(spark, built, run, _How("once", open_output(run.stream.sink), say))
    if failure is not None:
        hint = f"go back, correct the pipeline, then plan again: slackwater undo {run.operation} --yes"
        raise _backfill_failed(run, failure, hint)


def run_aside(
    spark: SparkSession, built: BuiltStream, run: OperationRun, output: SideOutput, say: Callable[[str], None]
) -> None:
    """Run the batch that is planned, and no other, into a side output. Raises StreamFailed where it fails."""
    definition = replace(built.definition, sink=side_sink(built.definition.sink, output))
    # The ledger has the log of the stream's own output.
    failure = _run(spark, replace(built, definition=definition), run, _How("once", None, say))
    if failure is not None:
        raise _backfill_failed(run, failure, "correct the pipeline, then plan again")


def _backfill_failed(run: OperationRun, failure: Failure, hint: str) -> StreamFailed:
    return StreamFailed(
        "backfill-failed",
        f"The batch of the backfill of stream {run.stream.full_name} fails: {failure.reason}",
        where=failure.place,
        hint=hint,
    )


def _run(spark: SparkSession, built: BuiltStream, run: OperationRun, how: _How) -> Failure | None:
    recorder = ProgressRecorder(run.ledger)
    spark.streams.addListener(listener := make_listener(recorder.put))
    try:
        services = RunServices(run.home, run.ledger, recorder, spark_version(), 0, how.say)
        return _watch(services, built, run, how)
    finally:
        spark.streams.removeListener(listener)
        recorder.close()


def _watch(services: RunServices, built: BuiltStream, run: OperationRun, how: _How) -> Failure | None:
    checkpoint = open_read_store(run.generation.location)
    stream, definition = run.stream, built.definition
    context = WriteContext(
        stream.id or "",
        stream.full_name,
        run.epoch,
        stream.output_mode,
        read_logs(checkpoint).planned,
        definition.partition_by,
    )
    definition.sink.check(built.frame, context)
    copier = LogCopier(services.ledger, stream.full_name, run.generation.number, checkpoint, how.output)
    active = QueryRun(services, run.generation, built, QueryStart(Trigger(how.trigger), context), copier)
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


def _staged(sink: Sink, run: OperationRun) -> Sink:
    if not isinstance(sink, Staged):
        raise Refused(
            "swap-unsupported", "This output cannot be built aside and swapped", where=f"stream {run.stream.full_name}"
        )
    return sink.staged(run.operation)
