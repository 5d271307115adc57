"""Runs a query into the staged output of an operation until it has caught up, recorded as any other run is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from slackwater.apply.replayer import StagedRun
from slackwater.checkpoint.logs import read_logs
from slackwater.errors import Refused, StreamFailed
from slackwater.model.sink import WriteContext
from slackwater.model.trigger import Trigger
from slackwater.recording.log_copier import LogCopier
from slackwater.runtime.failures import classify
from slackwater.runtime.listener import ProgressRecorder, make_listener
from slackwater.runtime.query import BuiltStream, QueryStart
from slackwater.runtime.query_run import QueryRun, RunServices
from slackwater.runtime.session import spark_version
from slackwater.sinks.contract import Sink, Staged
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.2


def run_staged(spark: SparkSession, built: BuiltStream, run: StagedRun, say: Callable[[str], None]) -> None:
    """Run the query. Raises StreamFailed where it fails, Refused where its sink has no staged output."""
    sink = _staged(built.definition.sink, run)
    definition = replace(built.definition, sink=sink)
    recorder = ProgressRecorder(run.ledger)
    spark.streams.addListener(listener := make_listener(recorder.put))
    try:
        services = RunServices(run.home, run.ledger, recorder, spark_version(), 0, say)
        _run(services, replace(built, definition=definition), run)
    finally:
        spark.streams.removeListener(listener)
        recorder.close()


def _run(services: RunServices, built: BuiltStream, run: StagedRun) -> None:
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
    # Not the log of the staged output: it names files that are elsewhere after the swap.
    copier = LogCopier(services.ledger, stream.full_name, run.generation.number, checkpoint)
    active = QueryRun(services, run.generation, built, QueryStart(Trigger("available-now"), context), copier)
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
    if failure is not None:
        raise StreamFailed(
            "staged-run-failed",
            f"The query of stream {stream.full_name} fails: {failure.reason}",
            where=failure.place,
            hint="correct the pipeline, then plan again",
        )


def _staged(sink: Sink, run: StagedRun) -> Sink:
    if not isinstance(sink, Staged):
        raise Refused(
            "swap-unsupported", "This output cannot be built aside and swapped", where=f"stream {run.stream.full_name}"
        )
    return sink.staged(run.operation)
