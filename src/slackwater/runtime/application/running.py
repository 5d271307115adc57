"""Runs an application that starts its own queries, each with checks, ledger and drain."""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import structlog

from slackwater.core.commands import command
from slackwater.core.errors import Refused, SlackwaterError, StreamFailed
from slackwater.core.escaping import printable
from slackwater.ledger.home import Home
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.application import POLL_S, OwnThreads, run_code
from slackwater.runtime.application.queries import (
    as_known,
    definition_of,
    refuse_repeated,
    refuse_unsupported,
    settle_place,
)
from slackwater.runtime.application.writers import CONTEXT, MANAGER, QUERY, SESSION, Handler, Start, intercepted
from slackwater.runtime.loader import digest, full_reference, locate, place_in
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.run.before_start import (
    StartGate,
    check,
    check_output_apart,
    record_refusal,
    record_start,
    register,
)
from slackwater.runtime.run.failures import SPARK_ERRORS
from slackwater.runtime.run.listener import STOP_SIGNALS, ProgressRecorder, make_listener
from slackwater.runtime.run.query import ApplicationCode, BuiltStream, first_line
from slackwater.runtime.run.stream_run import RunServices, StreamOutcome, StreamRun
from slackwater.runtime.session import SessionOptions, spark_version
from slackwater.runtime.session.session import driver_jvm_pid
from slackwater.sinks.common.registry import recognised

if TYPE_CHECKING:
    from slackwater.runtime.run.runner import RunDisplay

ASK_LEDGER_S = 1.0
SETTLE_S = 20.0

log = structlog.get_logger(__name__)


def run_application(
    reference: str,
    home: Home,
    ledger: Ledger,
    display: RunDisplay,
    given: SessionOptions,
    *,
    seconds: float | None = None,
    accepted: frozenset[str] = frozenset(),
) -> tuple[tuple[StreamOutcome, ...], int]:
    """Run an application; returns the outcomes and its exit code.

    ``given`` is for its own session, ``accepted`` are codes of changes despite which the state is kept. Raises
    SlackwaterError if the application does not handle a refused query.
    """
    whole = full_reference(reference)
    gate = StartGate(ledger, whole, display.say, accepted, given.words)
    queries = RunningQueries(whole, home, display, gate, seconds)
    try:
        with intercepted(queries, queries.threads), queries:
            code = _code_of(reference, queries.threads, given)
    finally:
        queries.close()
    return tuple(queries.outcomes.values()), 0 if queries.stopping else code


def _code_of(reference: str, threads: OwnThreads, given: SessionOptions) -> int:
    try:
        run_code(reference, threads, given)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{printable(str(end.code))}\n")
        return 1
    except (KeyboardInterrupt, SlackwaterError):
        raise
    except Exception as error:
        # As Python shows it: the application's own users know it so.
        traceback.print_exc()
        raise StreamFailed(
            "application-failed",
            f"The application ended with an exception: {first_line(error)}",
            where=place_in(locate(reference)[0], error),
            hint="the traceback above has the cause; correct the application, and run it again",
        ) from error
    return 0


@dataclass(slots=True)
class Active:
    run: StreamRun
    query: Any
    closing: ExitStack
    leases: LeaseKeeper
    asked_at: float = 0.0
    drain: bool = False


class RunningQueries(Handler):
    """A running application's queries, polled by a thread."""

    def __init__(self, reference: str, home: Home, display: RunDisplay, gate: StartGate, seconds: float | None) -> None:
        self.outcomes: dict[str, StreamOutcome] = {}
        self.stopping: int | None = None
        self.threads = OwnThreads()
        self._reference, self._home, self._display, self._gate = reference, home, display, gate
        self._ledger = ledger = gate.ledger
        self._recorder = ProgressRecorder(ledger, display)
        self._code = ApplicationCode(locate(reference)[0], lambda spark: spark)
        # Without restarts: the program itself decides what follows a failed query.
        self._services = RunServices(
            home, ledger, self._recorder, spark_version(), 0, display.say, digest(reference), gate.recorded
        )
        self._active: dict[str, Active] = {}
        self._started_streams: set[str] = set()
        self._lock = threading.RLock()
        self._depth = self._inside = 0
        self._over = False
        self._ended = threading.Event()
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._listened: list[tuple[Any, Any]] = []
        self._handlers: dict[signal.Signals, Any] = {}
        self._thread = threading.Thread(target=self._look_after, name="slackwater-queries", daemon=True)

    def __enter__(self) -> Self:
        self._take_signals()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Drain: the application has finished with its queries."""
        self._over = True
        self._drain_all()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(SETTLE_S)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for session, listener in self._listened:
            try:
                session.streams.removeListener(listener)
            except SPARK_ERRORS as error:
                log.debug("the listener was not removed", error=str(error))
        self._recorder.close()

    # What is called in place of PySpark's own methods.

    def replacements(self) -> Mapping[type, Mapping[str, Callable[..., Any]]]:
        return {
            QUERY: {
                "awaitTermination": self._await_one,
                "processAllAvailable": self._process_all,
                "stop": self._stop_one,
            },
            MANAGER: {"awaitAnyTermination": self._await_any},
            SESSION: {"stop": self._stop_session},
            CONTEXT: {"__init__": self._make_context},
        }

    def start(self, start: Start) -> Any:
        if self._is_ours():
            # A batch that is completed without output, before the application's own query.
            return start.begin()
        self._leave_if_ending()
        definition = definition_of(start, self._code)
        if definition is None:
            self._display.say("a query without a checkpoint location is run, and not recorded: a restart begins again")
            return start.begin()
        with self._ours():
            # Again, as the last query may have been drained while this thread waited.
            self._leave_if_ending()
            definition = as_known(definition, self._ledger)
            self._refuse_second(definition)
            refuse_unsupported(definition, start.frame)
            session = start.frame.sparkSession
            if all(known is not session for known, _ in self._listened):
                listener = make_listener(self._recorder.put)
                session.streams.addListener(listener)
                self._listened.append((session, listener))
            return self._started(definition, start)

    def _started(self, definition: StreamDefinition, start: Start) -> Any:
        closing = ExitStack()
        try:
            leases = closing.enter_context(
                LeaseKeeper([definition.full_name], self._home, self._ledger, "run", self._display.say)
            )
            leases.add_jvm(driver_jvm_pid(start.frame.sparkSession))
            built = BuiltStream(definition, start.frame, frozenset(), start.begin)
            settle_place(definition, self._ledger)
            if not start.given.name:
                refuse_repeated(built, self._reference, self._ledger, self._started_streams)
            record = register(definition, self._reference, self._home, self._ledger, self._gate.words)
            self._started_streams.add(record.full_name)
            check(self._home, self._ledger, record, "start")
            check_output_apart(self._home, self._ledger, record, built.paths_read)
            self._gate.check(built)
            if start.given.name:
                # Progress of the first batch may arrive before the query's id is known here.
                self._recorder.name_as(start.given.name, record.full_name)
            run = StreamRun(self._services, record, built, definition.trigger, leases.fence(record.full_name))
            run.start()
            while run.starts_again:
                # A batch that is pending in the checkpoint is run first; the application gets the query after it.
                run.poll()
                time.sleep(POLL_S)
        except BaseException as error:
            record_refusal(self._ledger, definition.full_name, error)
            # The program may handle the refusal and start the query again, and then needs the lease.
            closing.close()
            raise
        query = run.query
        if query is None:
            closing.close()
            raise StreamFailed(
                "query-ended",
                f"The query of stream {definition.full_name} ended while it was started",
                hint=f"{command('status', definition.full_name)} shows why it ended",
            )
        if start.table is not None and (identity := recognised(start.calls)) != record.sink:
            record_start(self._home, self._ledger, record._replace(sink=identity))
        self._active[definition.name] = Active(run, query, closing, leases)
        self._display.state(record.full_name, run.state)
        return query

    def _refuse_second(self, definition: StreamDefinition) -> None:
        other = self._active.get(definition.name)
        if other is not None:
            self._poll(definition.name, other)
        if definition.name in self._active:
            raise Refused(
                "query-duplicate",
                f"The application starts two queries that map to stream {definition.full_name}",
                expected="one running query of this name",
                found=definition.checkpoint,
                hint="give each query a name of its own with .queryName(...)",
            )

    def _await_one(self, original: Any, query: Any, timeout: Any = None) -> Any:
        return self._await(original, query, timeout, lambda: [] if query.isActive else [query])

    def _await_any(self, original: Any, manager: Any, timeout: Any = None) -> Any:
        return self._await(original, manager, timeout, self._ended_queries)

    def _ended_queries(self) -> list[Any]:
        with self._lock:
            return [one.query for one in self._active.values() if not one.query.isActive]

    def _await(self, original: Any, awaited: Any, timeout: Any, ended: Callable[[], list[Any]]) -> Any:
        """Waits in short steps, as a drain must end the wait."""
        # PySpark itself raises the error for a timeout that is not a positive number.
        if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
            return original(awaited, timeout)
        until = None if timeout is None else time.monotonic() + timeout
        try:
            while not original(awaited, POLL_S):
                self._leave_if_drained()
                if until is not None and time.monotonic() >= until:
                    return False
        finally:
            for query in ended():
                self._settle(query)
        self._leave_if_drained()
        return None if timeout is None else True

    def _process_all(self, original: Any, query: Any) -> Any:
        try:
            return original(query)
        finally:
            self._leave_if_drained()

    def _stop_one(self, original: Any, query: Any) -> Any:
        if self._is_ours():
            return original(query)
        found = self._of(query)
        if found is None or found.drain:
            return original(query)
        with self._ours():
            found.run.interrupt()
        self._settle(query)
        return None

    def _stop_session(self, original: Any, session: Any) -> Any:
        self._drain_all()
        return original(session)

    def _make_context(self, original: Any, context: Any, *arguments: Any, **named: Any) -> None:
        original(context, *arguments, **named)
        self._take_signals()

    # What the thread does.

    def _look_after(self) -> None:
        while not self._ended.wait(POLL_S):
            with self._lock:
                if self._deadline is not None and time.monotonic() >= self._deadline and self.stopping is None:
                    self._begin_stop(signal.SIGTERM)
                for name, active in list(self._active.items()):
                    self._poll(name, active)
                drained = self.stopping is not None and not self._active
            if drained:
                number = next((one for one in STOP_SIGNALS if signal.getsignal(one) == self._on_signal), None)
                if number is not None:
                    signal.pthread_kill(threading.main_thread().ident or 0, number)
                return

    @contextmanager
    def _ours(self) -> Iterator[None]:
        with self._lock:
            self._depth += 1
            self._inside = threading.get_ident()
            try:
                yield
            finally:
                self._depth -= 1

    def _is_ours(self) -> bool:
        return self._depth > 0 and self._inside == threading.get_ident()

    def _poll(self, name: str, active: Active) -> None:
        with self._ours():
            run, before = active.run, active.run.state
            if active.leases.lost is not None:
                run.interrupt(active.leases.lost.message)
            if not active.drain and time.monotonic() - active.asked_at >= ASK_LEDGER_S:
                active.asked_at = time.monotonic()
                active.drain = run.stop_requested()
            active.drain = active.drain or self.stopping is not None
            run.poll(drain=active.drain)
            if run.state != before:
                self._display.state(run.stream.full_name, run.state)
            if run.outcome is not None:
                self.outcomes[name] = run.outcome
                active.closing.close()
                self._active.pop(name, None)

    def _drain_all(self) -> None:
        # The lock is released between two looks: the program's own threads need it, too.
        while True:
            with self._lock:
                for name, active in list(self._active.items()):
                    active.drain = True
                    self._poll(name, active)
                if not self._active:
                    return
            time.sleep(POLL_S)

    def _settle(self, query: Any) -> None:
        """Wait until the query's end is recorded, so that the next query with its name finds a free lease."""
        until = time.monotonic() + SETTLE_S
        while (found := self._of(query)) is not None and time.monotonic() < until:
            with self._lock:
                self._poll(found.run.stream.name, found)
            time.sleep(POLL_S / 10)

    def _of(self, query: Any) -> Active | None:
        with self._lock:
            # By the JVM's object: PySpark makes a new Python object at each look-up of a query.
            return next((one for one in self._active.values() if one.query._jsq == query._jsq), None)

    # Ctrl-C, SIGTERM and --for.

    def _take_signals(self) -> None:
        """Install the signal handlers: before the application runs, and after PySpark sets its own.

        Python allows it only in the main thread.
        """
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                before = signal.getsignal(number)
                module = getattr(before, "__module__", None) or ""
                if before in (signal.SIG_DFL, signal.default_int_handler) or module.split(".")[0] == "pyspark":
                    self._handlers.setdefault(number, before)
                    signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.stopping is None:
            # Not under the lock: this is the main thread, which may hold it.
            self._begin_stop(signal.Signals(number))
            return
        if self._drained():
            self._leave()
        for active in list(self._active.values()):
            with self._ours():
                active.run.interrupt()
        raise KeyboardInterrupt

    def _begin_stop(self, number: int) -> None:
        self.stopping = number
        self._display.say("draining: no batch starts after the running one; press Ctrl-C again to stop at once")

    def _drained(self) -> bool:
        return self.stopping is not None and not self._active

    def _leave_if_drained(self) -> None:
        if self._drained() and threading.current_thread() is threading.main_thread():
            self._leave()

    def _leave_if_ending(self) -> None:
        if self._over or self.stopping is not None:
            self._leave()

    def _leave(self) -> NoReturn:
        raise SystemExit(0)
