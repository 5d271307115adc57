"""Records queries that Slackwater does not run, by a listener and a watcher for each."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.operators import state_stores
from slackwater.core.errors import SlackwaterError
from slackwater.core.program import with_started
from slackwater.core.records import STREAM_NAME, WATCHED, GenerationRecord, RunRecord, StreamRecord
from slackwater.core.reference import reference_of
from slackwater.diagnose.checks.stream import unfinished
from slackwater.diagnose.refusal import refusal
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.log_copier import LogCopier
from slackwater.ledger.recording.watcher import Watcher
from slackwater.ledger.streams import STATE_STORES
from slackwater.ledger.workspace import record_move, stream_with
from slackwater.runtime.application.queries import definition_of, name_beside, repeated
from slackwater.runtime.application.writers import (
    Handler,
    Start,
    intercepted,
    is_client,
    is_intercepted,
    refuse_connect,
)
from slackwater.runtime.loader import digest, is_application, locate
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.program.code_reach import environment_settings
from slackwater.runtime.run.before_start import program_digest, program_json
from slackwater.runtime.run.failures import UNREADABLE
from slackwater.runtime.run.listener import ProgressRecorder, RecordedQuery, make_listener
from slackwater.runtime.run.query import ApplicationCode, BuiltStream
from slackwater.runtime.session import spark_version
from slackwater.runtime.session.settings import effective_settings
from slackwater.sinks.common.registry import UNKNOWN, open_output
from slackwater.storage.open import check_no_secret, open_read_store, resolved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


log = structlog.get_logger(__name__)


def watch(spark: SparkSession, *, ledger: str | PathLike[str]) -> Watching:
    """Record every query that ``spark`` starts from now on in ``ledger`` (a path, or a database URL).

    A query is known as ``watched/NAME``: its ``queryName``, else the last part of its output, or its table; its id
    where that cannot be the name of a stream. With it are recorded what a run records: settings, code and the query's
    plan. Call ``close()`` at the end. In a program that ``slackwater run`` runs, or whose queries are read for a plan,
    nothing is recorded by this.
    Raises UsageError or EnvironmentMissing where the ledger cannot be opened, Refused (``connect-session``) for a
    session of Spark Connect; later errors are only logged.
    """
    if is_client(spark):
        refuse_connect("slackwater.watch() was given a session")
    if is_intercepted(other_than=_UNDER_WAY):
        return Watching()
    return SessionWatch(spark, Ledger.open(ledger, create=True))


class Watching:
    """Records nothing, in a program that Slackwater runs: the run records its queries."""

    @property
    def errors(self) -> int:
        """Failed recordings; the next start copies the data that the checkpoint still has."""
        return 0

    def close(self) -> None: ...


Noticed = tuple[Start, StreamDefinition]


class SessionWatch(Watching):
    def __init__(self, spark: SparkSession, ledger: Ledger) -> None:
        self._spark = spark
        self._ledger = ledger
        self._recorder = ProgressRecorder(ledger)
        self._followed: dict[str, tuple[Watcher, int]] = {}
        """The watcher and the ledger's run of each run of a query."""
        self._streams: set[str] = set()
        self._errors = 0
        self._reference = _own_reference()
        self._code = digest(self._reference) if self._reference is not None else None
        self._listener = make_listener(self._recorder.put, self._started, self._terminated)
        spark.streams.addListener(self._listener)
        _UNDER_WAY.open()

    @property
    def errors(self) -> int:
        return self._errors + self._recorder.errors + sum(watcher.errors for watcher, _ in self._followed.values())

    def close(self) -> None:
        _UNDER_WAY.close()
        self._spark.streams.removeListener(self._listener)
        for watcher, _ in list(self._followed.values()):
            watcher.stop()
        self._recorder.close()
        # Last, as the watchers and the recorder still write what they have.
        self._ledger.close()

    def _started(self, query: str, run: str, name: str | None) -> None:
        try:
            self._follow(query, run, name)
        except Exception as error:  # noqa: BLE001 - the outermost edge: whatever it is, the query continues
            self._errors += 1
            log.warning("a query is not recorded", query=name or query, error=str(error))

    def _terminated(self, run_id: str, error: str | None) -> None:
        if run_id not in self._followed:
            return
        watcher, run = self._followed[run_id]

        def end() -> None:
            watcher.stop()
            reason = None if error is None else error.splitlines()[0]
            self._ledger.end_run(run, "finished" if error is None else "failed", reason)

        # Not here: this is Spark's own thread, and the last pass may wait for the database.
        self._recorder.afterwards(end)

    def _follow(self, query_id: str, run_id: str, query_name: str | None) -> None:
        query = self._spark.streams.get(query_id)
        if query is None:
            return
        execution = query._jsq.streamingQuery()  # classic Spark's JVM handle
        location = str(execution.resolvedCheckpointRoot())
        # Before the location is recorded: ledger and messages must not contain a password.
        check_no_secret(location)
        noticed = _UNDER_WAY.at(location)
        name = name_of_stream(query_id, query_name) if noticed is None else noticed[1].name
        known = stream_with(self._ledger, name, location)
        if known is not None:
            name = known.name
            record_move(self._ledger, known, location)
        elif noticed is not None:
            name = name_beside(self._ledger, noticed[1])
        shown = "" if noticed is not None else str(execution.sink().toString())
        if noticed is not None:
            sink = noticed[1].sink.identity()
        elif shown.startswith("FileSink[") and shown.endswith("]"):
            # Of a query not started by Python's writer.
            sink = {"kind": "files", "format": "", "path": shown.removeprefix("FileSink[").removesuffix("]")}
        else:
            sink = dict(UNKNOWN)
        reference = self._reference or (known.pipeline_file if known is not None else "")
        stream = StreamRecord(WATCHED, name, sink, str(execution.outputMode()).lower(), reference)
        for finding in unfinished(self._ledger.open_operation(stream.full_name), None, stream.session):
            # The directory may be the checkpoint of another generation than the ledger has until then.
            raise refusal(finding, stream.name)
        is_new = stream.full_name not in self._ledger.stream_names()
        self._ledger.register_stream(stream)
        self._streams.add(stream.full_name)
        number = _generation(self._ledger, stream, location, query_id)
        run = self._ledger.begin_run(
            stream.full_name,
            number,
            spark_version(),
            settings=effective_settings(self._spark),
            code=self._code,
            end=WATCHED,
        )
        # Its batches name no run: nothing has read before it which batch the output skips (``history``).
        self._recorder.follow(query_id, RecordedQuery(stream.full_name, number, None))
        checkpoint, output = open_read_store(location), open_output(stream.sink)
        watcher = Watcher(LogCopier(self._ledger, stream.full_name, number, checkpoint, output))
        watcher.start()
        self._followed[run_id] = watcher, run.id
        # Until its program is known, what it commits is not of the program before it.
        generation = self._ledger.generation(stream.full_name, number)
        committed = read_logs(checkpoint).committed
        programs = with_started(generation.programs, None, committed)
        self._ledger.update_generation(stream.full_name, number, programs=programs)
        if noticed is not None:
            # Not here: the program waits for its query.
            self._recorder.afterwards(lambda: self._describe(noticed, generation, committed, run, is_new=is_new))

    def _describe(
        self, noticed: Noticed, generation: GenerationRecord, committed: int, run: RunRecord, *, is_new: bool
    ) -> None:
        start, definition = noticed
        built, layout = BuiltStream(definition, start.frame, frozenset(), start.begin), None
        programs = with_started(generation.programs, program_json(built.program), committed)
        if built.profile is not None:
            layout = dict(built.profile.as_json())
            # Tasks create the folders of stores: before the first commit some may be missing.
            if built.profile.stateful and committed >= 0:
                layout[STATE_STORES] = state_stores(open_read_store(generation.location))
            settings = {**(run.settings or {}), **environment_settings(built.program, self._spark)}
            self._ledger.record_rows_digest(run.id, built.profile.rows_digest, program_digest(built.program), settings)
        if is_new and start.given.name is None and self._reference is not None and committed < 0:
            known = repeated(built, self._reference, self._ledger, self._streams)
            if known is not None:
                _say_new_checkpoint(self._ledger.generation(known.full_name, known.current_generation), generation)
        self._ledger.update_generation(generation.stream, generation.number, layout=layout, programs=programs)


def name_of_stream(query: str, name: str | None) -> str:
    return name if name is not None and STREAM_NAME.fullmatch(name) else query


def _generation(ledger: Ledger, stream: StreamRecord, location: str, query_id: str) -> int:
    """The number of the generation; a known name with a different checkpoint gets a new generation."""
    known, here = ledger.generations(stream.full_name), resolved(location)
    # Another query id in the same directory: the checkpoint was deleted, and Spark has started a new one.
    same = [one for one in known if resolved(one.location) == here and one.query_id in (None, query_id)]
    if same:
        number = same[-1].number
        if same[-1].query_id is None:
            ledger.update_generation(stream.full_name, number, query_id=query_id)
    else:
        number = 1 + max((record.number for record in known), default=0)
        made = GenerationRecord(stream.full_name, number, location, query_id=query_id)
        if known:
            _say_new_checkpoint(known[-1], made)
        ledger.add_generation(made)
    ledger.set_current_generation(stream.full_name, number)
    return number


def _say_new_checkpoint(known: GenerationRecord, made: GenerationRecord) -> None:
    """Report a new checkpoint. A watcher refuses nothing; a run would refuse this start."""
    log.error(
        "query-checkpoint: a query is started with a new checkpoint, and writes all rows again",
        stream=known.stream,
        expected=known.location,
        found=made.location,
        hint="give it the same checkpointLocation at each start",
    )


def _own_reference() -> str | None:
    main = sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    code = spec.name.removesuffix(".__main__") if spec is not None else file and str(Path(file).absolute())
    if not code:
        return None
    reference = reference_of(code, sys.argv[1:])
    try:
        return reference if is_application(reference) else None
    except SlackwaterError:
        return None


class _StartsUnderWay(Handler):
    """Starts that are inside PySpark's own call.

    The writer has facts that listeners lack. A single replacement of PySpark's methods serves all watched sessions, so
    they can close in any order. Never refuses or changes a start.
    """

    def __init__(self) -> None:
        self._noticed: list[Noticed] = []
        self._lock = threading.Lock()
        self._users = 0
        self._replaced = ExitStack()

    def open(self) -> None:
        """Replace the methods; reference-counted with ``close``."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._replaced.enter_context(intercepted(self))

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._replaced.close()

    def at(self, location: str) -> Noticed | None:
        wanted = resolved(location)
        with self._lock:
            found = list(self._noticed)
        return next((one for one in found if resolved(one[1].checkpoint or "") == wanted), None)

    def start(self, start: Start) -> Any:
        program = getattr(sys.modules.get("__main__"), "__file__", None) or "-"
        try:
            reference = _own_reference()
            file = Path(program).absolute() if reference is None else locate(reference)[0]
            definition = definition_of(start, ApplicationCode(file, lambda spark: spark))
        except UNREADABLE as error:
            # The listener records the query all the same, by what the JVM shows of it.
            log.warning("what a query writes to is not recorded", error=str(error))
            definition = None
        if definition is None:
            return start.begin()
        noticed = (start, definition)
        with self._lock:
            self._noticed.append(noticed)
        try:
            return start.begin()
        finally:
            with self._lock:
                self._noticed.remove(noticed)


_UNDER_WAY = _StartsUnderWay()
