"""Runs the streams of a pipeline in one Spark application until they end, are stopped, or their time is up.

``--until-caught-up`` runs each stage after those whose output it reads; otherwise all run side by side. One failed
stream does not stop the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog

from slackwater.errors import NotFound, PipelineError, SlackwaterError
from slackwater.home.home import Home
from slackwater.lease.keeper import LeaseKeeper
from slackwater.ledger.ledger import Ledger
from slackwater.model.records import BatchRecord, StreamRecord
from slackwater.model.trigger import Trigger
from slackwater.runtime.before_start import check, register
from slackwater.runtime.failures import spark_errors
from slackwater.runtime.listener import ProgressRecorder, make_listener
from slackwater.runtime.loader import LoadedPipeline, digest
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.query import BuiltStream, build, create_output
from slackwater.runtime.query_run import RunServices
from slackwater.runtime.session import SessionOptions, driver_jvm_pid, end_session, spark_version, start_session
from slackwater.runtime.stop_signals import StopSignals
from slackwater.runtime.stream_run import StreamOutcome, StreamRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQueryListener

POLL_S = 0.2
ASK_LEDGER_S = 1.0

NOT_COMPLETE = ("failed", "not-started")

log = structlog.get_logger(__name__)


class RunDisplay(Protocol):
    """Shows a run to its user."""

    def say(self, text: str) -> None:
        """Show a message."""

    def state(self, stream: str, state: str) -> None:
        """Show that a stream is now running, draining, finished, ..."""

    def batch(self, batch: BatchRecord) -> None:
        """Show a finished batch."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run and for how long. ``streams`` empty: all of the pipeline. ``seconds`` ``None``: no limit."""

    loaded: LoadedPipeline
    session: SessionOptions
    streams: tuple[str, ...] = ()
    until_caught_up: bool = False
    seconds: float | None = None
    restarts_most: int = 5


def run(request: RunRequest, home: Home, ledger: Ledger, display: RunDisplay) -> tuple[StreamOutcome, ...]:
    """Run until the end. Raises PipelineError, Refused or EnvironmentMissing before any stream has started.

    Raises LeaseHeld, too, where a lease was lost meanwhile; the streams have been stopped then.
    """
    definitions = _selected(request)
    with LeaseKeeper(definitions, home, ledger, "run", display.say) as leases:
        # Only whoever holds a stream's lease may change what is known of it.
        records = [register(definition, request.loaded.reference, home, ledger) for definition in definitions]
        if len(records) == 1:
            # Refused now rather than when Spark has started; with several streams, one that is refused stops no other.
            check(home, ledger, records[0])
        spark = start_session(request.session, display.say)
        try:
            leases.add_jvm(driver_jvm_pid(spark))
            built = [_build(spark, request.loaded, definition, home) for definition in definitions]
            outcomes = Application(request, home, ledger, display, spark).run(records, built, leases)
        finally:
            end_session(spark)
    if leases.lost is not None:
        raise leases.lost
    return outcomes


def _build(spark: SparkSession, loaded: LoadedPipeline, definition: StreamDefinition, home: Home) -> BuiltStream:
    built = build(spark, loaded, definition, home.path)
    create_output(built)
    return built


def _selected(request: RunRequest) -> list[StreamDefinition]:
    streams = request.loaded.pipeline.streams
    unknown = [name for name in request.streams if name not in streams]
    if unknown:
        raise NotFound(
            "stream-unknown",
            f"Pipeline {request.loaded.pipeline.name} has no stream of this name",
            expected="one of " + ", ".join(streams),
            found=unknown[0],
        )
    selected = [definition for name, definition in streams.items() if not request.streams or name in request.streams]
    for definition in selected:
        _check_continuous(definition)
    return selected


def _check_continuous(definition: StreamDefinition) -> None:
    # Spark tries to run such a query in micro-batches and then fails with "Unknown type of trigger".
    if definition.trigger.kind == "continuous" and not definition.sink.traits.continuous:
        raise PipelineError(
            "trigger-continuous",
            f"The {definition.sink.kind} sink of stream {definition.full_name} cannot be written continuously",
            expected="a sink that Spark writes continuously, such as Kafka",
            found=f"continuous({definition.trigger.interval!r})",
            hint='use triggers.processing_time("0 seconds"): each batch starts as soon as the one before it has ended',
        )


class Application:
    """One Spark application with its streams."""

    def __init__(
        self, request: RunRequest, home: Home, ledger: Ledger, display: RunDisplay, spark: SparkSession
    ) -> None:
        self._request = request
        self._display = display
        self._spark = spark
        self._recorder = ProgressRecorder(ledger, display.batch)
        self._services = RunServices(
            home,
            ledger,
            self._recorder,
            spark_version(),
            request.restarts_most,
            display.say,
            digest(request.loaded.reference),
        )
        self._deadline = time.monotonic() + request.seconds if request.seconds is not None else None
        self._asked_ledger_at = 0.0

    def run(
        self, records: Sequence[StreamRecord], built: Sequence[BuiltStream], leases: LeaseKeeper
    ) -> tuple[StreamOutcome, ...]:
        streams = dict(zip((record.name for record in records), zip(records, built, strict=True), strict=True))
        stages_left = stages(built) if self._request.until_caught_up else [list(streams)]
        outcomes: dict[str, StreamOutcome] = {}
        self._spark.streams.addListener(listener := make_listener(self._recorder.put))
        try:
            with StopSignals() as signals:
                for stage in stages_left:
                    runs = [
                        self._start(
                            *streams[name],
                            outcomes,
                            signals,
                            epoch=leases.fence(streams[name][0].full_name),
                            alone=len(streams) == 1,
                        )
                        for name in stage
                    ]
                    self._watch([run for run in runs if isinstance(run, StreamRun)], leases, signals)
                    outcomes.update({name: _outcome(run) for name, run in zip(stage, runs, strict=True)})
        finally:
            self._end(listener)
        return tuple(outcomes[name] for name in streams)

    def _end(self, listener: StreamingQueryListener) -> None:
        try:
            self._spark.streams.removeListener(listener)
        except spark_errors() as error:
            log.warning("the listener was not removed", error=str(error))
        self._recorder.close()
        if self._recorder.errors:
            self._display.say(
                f"{self._recorder.errors} batches were not recorded in the ledger; "
                "their ranges are copied from the checkpoint at the next start"
            )

    def _start(
        self,
        record: StreamRecord,
        built: BuiltStream,
        outcomes: dict[str, StreamOutcome],
        signals: StopSignals,
        *,
        epoch: int,
        alone: bool,
    ) -> StreamRun | StreamOutcome:
        broken = [name for name in sorted(built.upstreams) if name in outcomes and outcomes[name].end in NOT_COMPLETE]
        if broken:
            why = "failed" if outcomes[broken[0]].end == "failed" else "was not started"
            return StreamOutcome(record.full_name, "not-started", f"{broken[0]}, whose output it reads, {why}")
        if signals.count or self._time_is_up():
            return StreamOutcome(record.full_name, "not-started", "the run was stopped before its turn")
        trigger = built.definition.trigger
        if self._request.until_caught_up and not trigger.ends_by_itself:
            trigger = Trigger("available-now")
        run = StreamRun(self._services, record, built, trigger, epoch)
        try:
            run.start()
        except SlackwaterError as error:
            if alone:
                raise
            self._display.say(
                f"{record.full_name} does not start: {error}" + (f" (hint: {error.hint})" if error.hint else "")
            )
            return StreamOutcome(record.full_name, "failed", f"{error.code}: {error}")
        self._display.state(record.full_name, run.state)
        return run

    def _watch(self, runs: Sequence[StreamRun], leases: LeaseKeeper, signals: StopSignals) -> None:
        draining = False
        while any(run.outcome is None for run in runs):
            if signals.at_once or leases.lost:
                self._stop_at_once(runs, leases)
                return
            if not draining and (signals.count or self._time_is_up()):
                draining = True
                self._display.say("draining: no batch starts after the running one; press Ctrl-C again to stop at once")
            requested = self._stop_requests(runs)
            for run in runs:
                self._poll(run, drain=draining or run in requested)
            time.sleep(POLL_S)

    def _poll(self, run: StreamRun, *, drain: bool) -> None:
        before = run.state
        run.poll(drain=drain)
        if run.state != before:
            self._display.state(run.stream.full_name, run.state)

    def _stop_requests(self, runs: Sequence[StreamRun]) -> list[StreamRun]:
        if time.monotonic() - self._asked_ledger_at < ASK_LEDGER_S:
            return []
        self._asked_ledger_at = time.monotonic()
        return [run for run in runs if run.outcome is None and run.stop_requested()]

    def _stop_at_once(self, runs: Sequence[StreamRun], leases: LeaseKeeper) -> None:
        if leases.lost is not None:
            self._display.say(f"stopping at once: {leases.lost}")
        for run in runs:
            if run.outcome is None:
                run.interrupt(leases.lost.message if leases.lost else None)
                self._display.state(run.stream.full_name, run.state)

    def _time_is_up(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline


def _outcome(run: StreamRun | StreamOutcome) -> StreamOutcome:
    if isinstance(run, StreamOutcome):
        return run
    return run.outcome or StreamOutcome(run.stream.full_name, "interrupted")


def stages(built: Sequence[BuiltStream]) -> list[list[str]]:
    """Names by stage: each stream comes after all streams whose output it reads. Raises PipelineError for a cycle."""
    left = {stream.definition.name: set(stream.upstreams) for stream in built}
    for upstreams in left.values():
        upstreams.intersection_update(left)
    found: list[list[str]] = []
    while left:
        stage = [name for name, upstreams in left.items() if not upstreams & set(left)]
        if not stage:
            raise PipelineError(
                "pipeline-cycle", "The streams read each other's output in a cycle", found=", ".join(sorted(left))
            )
        found.append(stage)
        for name in stage:
            del left[name]
    return found
