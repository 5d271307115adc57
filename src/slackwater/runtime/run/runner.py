"""Runs a pipeline's streams in a single Spark application.

``--until-caught-up`` runs each stage after its upstreams; otherwise all run concurrently. A failed or refused stream
does not stop the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import structlog

from slackwater.core.errors import PipelineError, SlackwaterError
from slackwater.core.program import Trigger
from slackwater.core.records import BatchRecord, StreamRecord
from slackwater.ledger.home import Home
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.loader import LoadedPipeline, digest
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.run.before_start import Accepted, StartGate, check, check_output_apart, record_refusal, register
from slackwater.runtime.run.failures import KNOWN_ERRORS, SPARK_ERRORS, classify, is_transient
from slackwater.runtime.run.listener import ProgressRecorder, StopSignals, make_listener
from slackwater.runtime.run.query import BuiltStream, build, build_again, create_output
from slackwater.runtime.run.stream_run import RunServices, StreamOutcome, StreamRun
from slackwater.runtime.session import SessionOptions, spark_version
from slackwater.runtime.session.session import driver_jvm_pid, end_session, start_session
from slackwater.runtime.session.settings import distinct, session_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


POLL_S = 0.2
ASK_LEDGER_S = 1.0

NOT_COMPLETE = ("failed", "not-started")
REAL_TIME_SINCE = (4, 1)
"""The first Spark with this trigger: PySpark has an argument for it later."""

log = structlog.get_logger(__name__)


class RunDisplay(Protocol):
    def say(self, text: str) -> None: ...

    def state(self, stream: str, state: str) -> None: ...

    def batch(self, batch: BatchRecord) -> None: ...

    def idle(self, stream: str) -> None:
        """A trigger has found no new data."""

    def restarted(self, stream: str) -> None: ...


class RunRequest(NamedTuple):
    """The arguments of a run. ``streams`` empty: all. ``seconds`` ``None``: no limit.

    ``accepted`` are codes of changes despite which the state is kept.
    """

    loaded: LoadedPipeline
    session: SessionOptions
    streams: tuple[str, ...] = ()
    until_caught_up: bool = False
    seconds: float | None = None
    restarts_most: int = 5
    accepted: frozenset[str] = frozenset()


def run(request: RunRequest, home: Home, ledger: Ledger, display: RunDisplay) -> tuple[StreamOutcome, ...]:
    """Run the pipeline.

    Raises PipelineError, Refused or EnvironmentMissing before any start, and LeaseHeld after a lost lease, with streams
    stopped.
    """
    definitions = request.loaded.selected(request.streams)
    not_started = NotStarted(len(definitions), display, ledger)
    names = [definition.full_name for definition in definitions]
    with LeaseKeeper(names, home, ledger, "run", display.say, refuse=not_started.refuse) as leases:
        not_started.leases = leases
        records = _registered(request, definitions, home, ledger, not_started)
        spark = start_session(request.session, display.say)
        try:
            # After a ``kill -9`` of this process its JVM may still write: the next holder waits for the end of both.
            leases.add_jvm(driver_jvm_pid(spark))
            gate = StartGate(ledger, request.loaded.reference, display.say, request.accepted, request.session.words)
            streams = _built(spark, request.loaded, records, not_started, known=(home, ledger), gate=gate)
            application = Application(request, home, ledger, display, spark, accepted=gate.recorded)
            outcomes = application.run(streams, leases, not_started)
        finally:
            # Within the leases: no other run may start a stream while this JVM can still write to its output.
            end_session(spark)
    if leases.lost is not None:
        raise leases.lost
    return tuple(outcomes[definition.name] for definition in definitions)


def _registered(
    request: RunRequest, definitions: Sequence[StreamDefinition], home: Home, ledger: Ledger, not_started: NotStarted
) -> list[tuple[StreamDefinition, StreamRecord]]:
    """Record and check streams before Spark starts: most refusals need no Spark.

    Only a lease's holder may change the stream's record.
    """
    found: list[tuple[StreamDefinition, StreamRecord]] = []
    for definition in definitions:
        if definition.name in not_started.outcomes:
            continue
        with not_started.guard(definition.full_name):
            _check_trigger(definition)
            record = register(definition, request.loaded.reference, home, ledger, request.session.words)
            try:
                check(home, ledger, record, "start")
            except SlackwaterError as error:
                # Checked again when the stream starts, which is tried several times after a transient failure.
                if len(definitions) == 1 or not is_transient(error):
                    raise
            found.append((definition, record))
    not_started.require_one()
    return found


def _built(
    spark: SparkSession,
    loaded: LoadedPipeline,
    records: Sequence[tuple[StreamDefinition, StreamRecord]],
    not_started: NotStarted,
    *,
    known: tuple[Home, Ledger],
    gate: StartGate,
) -> list[tuple[StreamRecord, BuiltStream]]:
    found: list[tuple[StreamRecord, BuiltStream]] = []
    for definition, record in records:
        with not_started.guard(definition.full_name):
            built = build(session_of(spark, definition), loaded, definition, known[0].given)
            check_output_apart(*known, record, built.paths_read)
            # Before the output is created: a start that is refused leaves nothing behind.
            gate.check(built, partial(build_again, loaded, known[0].given))
            create_output(built)
            found.append((record, built))
    not_started.require_one()
    # Only now are the changes of all streams known, and ``--accept`` names the change of any of them.
    gate.require_found()
    return found


def _check_trigger(definition: StreamDefinition) -> None:
    version = spark_version()
    there = tuple(map(int, version.split(".")[:2])) >= REAL_TIME_SINCE
    if definition.trigger.kind == "real-time" and not (there and definition.sink.traits.real_time):
        raise PipelineError(
            "trigger-real-time",
            f"Stream {definition.full_name} cannot be run in real-time mode",
            expected="a sink that Spark writes in real-time mode: Kafka without exactly_once, foreach, console"
            if there
            else f"Spark {'.'.join(map(str, REAL_TIME_SINCE))} or later",
            found=f"the {definition.sink.kind} sink" if there else f"Spark {version}",
            hint='use triggers.processing_time("0 seconds"): each batch starts when the batch before it ends',
        )
    # Spark tries to run such a query in micro-batches and then fails with "Unknown type of trigger".
    if definition.trigger.kind == "continuous" and not definition.sink.traits.continuous:
        raise PipelineError(
            "trigger-continuous",
            f"The {definition.sink.kind} sink of stream {definition.full_name} cannot be written continuously",
            expected="a sink that Spark writes continuously, such as Kafka",
            found=f"continuous({definition.trigger.interval!r})",
            hint='use triggers.processing_time("0 seconds"): each batch starts when the batch before it ends',
        )


class Application:
    def __init__(
        self,
        request: RunRequest,
        home: Home,
        ledger: Ledger,
        display: RunDisplay,
        spark: SparkSession,
        *,
        accepted: Accepted | None = None,
    ) -> None:
        self._request = request
        self._display = display
        self._spark = spark
        self._recorder = ProgressRecorder(ledger, display)
        self._services = RunServices(
            home,
            ledger,
            self._recorder,
            spark_version(),
            request.restarts_most,
            display.say,
            digest(request.loaded.reference),
            accepted or {},
        )
        self._deadline = time.monotonic() + request.seconds if request.seconds is not None else None
        self._asked_ledger_at = 0.0

    def run(
        self, built: Sequence[tuple[StreamRecord, BuiltStream]], leases: LeaseKeeper, not_started: NotStarted
    ) -> dict[str, StreamOutcome]:
        streams = {record.name: (record, stream) for record, stream in built}
        in_stages = self._request.until_caught_up
        stages_left = stages([stream for _, stream in built]) if in_stages else [list(streams)]
        # Side by side, a stream runs whether what it reads grows or not.
        outcomes = dict(not_started.outcomes) if in_stages else {}
        sessions = distinct([self._spark, *(stream.frame.sparkSession for _, stream in built)])
        listener = make_listener(self._recorder.put)
        for session in sessions:
            session.streams.addListener(listener)
        try:
            with StopSignals() as signals:
                for stage in stages_left:
                    runs = [
                        self._start(*streams[name], outcomes, signals, leases=leases, not_started=not_started)
                        for name in stage
                    ]
                    self._watch([run for run in runs if isinstance(run, StreamRun)], leases, signals)
                    for name, run in zip(stage, runs, strict=True):
                        ended = run if isinstance(run, StreamOutcome) else run.outcome
                        outcomes[name] = ended or StreamOutcome(streams[name][0].full_name, "interrupted")
        finally:
            try:
                for session in sessions:
                    session.streams.removeListener(listener)
            except SPARK_ERRORS as error:
                # A JVM that has exited has no listener left; what it reported before is still written below.
                log.warning("the listener was not removed", error=str(error))
            self._recorder.close()
            if self._recorder.errors:
                self._display.say(
                    f"{self._recorder.errors} batches were not recorded in the ledger; "
                    "their ranges are copied from the checkpoint at the next start"
                )
        return not_started.outcomes | outcomes

    def _start(
        self,
        record: StreamRecord,
        built: BuiltStream,
        outcomes: dict[str, StreamOutcome],
        signals: StopSignals,
        *,
        leases: LeaseKeeper,
        not_started: NotStarted,
    ) -> StreamRun | StreamOutcome:
        broken = [name for name in sorted(built.upstreams) if name in outcomes and outcomes[name].end in NOT_COMPLETE]
        if broken:
            why = "failed" if outcomes[broken[0]].end == "failed" else "was not started"
            self._display.state(record.full_name, "not-started")
            return StreamOutcome(record.full_name, "not-started", f"{broken[0]}, whose output it reads, {why}")
        if signals.count or self._time_is_up() or leases.lost:
            # Another driver may have the streams of a run that has lost a lease.
            return StreamOutcome(record.full_name, "not-started", "the run was stopped before its turn")
        trigger = built.definition.trigger
        if self._request.until_caught_up and not trigger.ends_by_itself:
            trigger = Trigger("available-now")
        run = StreamRun(self._services, record, built, trigger, leases.fence(record.full_name))
        with not_started.guard(record.full_name):
            run.start()
        if record.name in not_started.outcomes:
            return not_started.outcomes[record.name]
        self._display.state(record.full_name, run.state)
        return run

    def _watch(self, runs: Sequence[StreamRun], leases: LeaseKeeper, signals: StopSignals) -> None:
        draining = False
        while (left := [run for run in runs if run.outcome is None]) and not (signals.at_once or leases.lost):
            if not draining and (signals.count or self._time_is_up()):
                draining = True
                self._display.say("draining: no batch starts after the running one; press Ctrl-C again to stop at once")
            asks = time.monotonic() - self._asked_ledger_at >= ASK_LEDGER_S
            self._asked_ledger_at = time.monotonic() if asks else self._asked_ledger_at
            for run in runs:
                state, restarts = run.state, run.restarts
                run.poll(drain=draining or (asks and run.outcome is None and run.stop_requested()))
                if run.state != state:
                    self._display.state(run.stream.full_name, run.state)
                if run.restarts > restarts:
                    self._display.restarted(run.stream.full_name)
            time.sleep(POLL_S)
        if left and leases.lost is not None:
            self._display.say(f"stopping at once: {leases.lost}")
        for run in left:
            run.interrupt(leases.lost.message if leases.lost else None)
            self._display.state(run.stream.full_name, run.state)

    def _time_is_up(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline


def stages(built: Sequence[BuiltStream]) -> list[list[str]]:
    """The streams' names by stage, each after its upstreams. Raises PipelineError for a cycle."""
    names = {stream.definition.name for stream in built}
    # A stream that is not part of this run does not end in it, so that nothing can wait for its end.
    sorter = TopologicalSorter({stream.definition.name: stream.upstreams & names for stream in built})
    try:
        sorter.prepare()
    except CycleError as error:
        raise PipelineError(
            "pipeline-cycle",
            "The streams read each other's output in a cycle",
            found=", ".join(sorted({*error.args[1]})),
            hint="let one of them read a different source, or move it to a pipeline of its own",
        ) from error
    found: list[list[str]] = []
    while sorter.is_active():
        found.append([*sorter.get_ready()])
        sorter.done(*found[-1])
    return found


OF_THE_HOME = "ledger-"
"""Errors whose codes have this prefix concern all streams: they end the run."""


class NotStarted:
    """Outcomes of streams that do not start. A run's only stream raises its error instead.

    The ``ledger`` records each.
    """

    def __init__(self, selected: int, display: RunDisplay, ledger: Ledger | None = None) -> None:
        self.outcomes: dict[str, StreamOutcome] = {}
        self.leases: LeaseKeeper | None = None
        self._selected = selected
        self._display = display
        self._ledger = ledger
        self._first: Exception | None = None

    def refuse(self, stream: str, error: Exception) -> None:
        ours = error if isinstance(error, SlackwaterError) else None
        if self._selected == 1 or (ours and ours.code.startswith(OF_THE_HOME)):
            raise error
        failure = classify(error)
        hint = f" (hint: {ours.hint})" if ours and ours.hint else ""
        self._display.say(f"{stream} does not start: {failure.reason}{hint}")
        self._display.state(stream, "failed")
        self.outcomes[stream.partition("/")[2]] = StreamOutcome(stream, "failed", failure.reason, error=ours)
        self._first = self._first or error
        if self.leases is not None:
            # At once: another run may start the stream while this one continues with the others.
            self.leases.release(stream)

    @contextmanager
    def guard(self, stream: str) -> Iterator[None]:
        try:
            yield
        except KNOWN_ERRORS as error:
            if self._ledger is not None:
                record_refusal(self._ledger, stream, error)
            self.refuse(stream, error)

    def require_one(self) -> None:
        if self._first is not None and len(self.outcomes) == self._selected:
            raise self._first
