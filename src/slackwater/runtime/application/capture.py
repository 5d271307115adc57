"""Reads an application's queries: runs its file up to each query's start, but starts no query.

All other code in the file runs. Loops that supervise queries would never end, as no query runs.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import structlog

from slackwater.core.commands import command
from slackwater.core.errors import PipelineError, SlackwaterError
from slackwater.core.reference import reference_of, split_reference
from slackwater.runtime import application
from slackwater.runtime.application import OwnThreads, run_code
from slackwater.runtime.application.queries import (
    ApplicationQueries,
    RecognisedSink,
    apart,
    as_known,
    calling_line,
    definition_of,
)
from slackwater.runtime.application.writers import CONTEXT, MANAGER, SESSION, Handler, Start, intercepted
from slackwater.runtime.loader import LoadedPipeline, full_reference, locate, place_in
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.run.query import ApplicationCode, first_line
from slackwater.runtime.session import SessionOptions
from slackwater.sinks.common.registry import is_same_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.ledger.ledger import Ledger


log = structlog.get_logger(__name__)
REPEATS_MAX = 100
"""A loop over days or attempts is shorter."""
_REPEATED_S_MAX = 10.0
"""A program may repeat the same lines this long; a wait for a query's first batch lasts longer, or for ever."""
_ASKED = frozenset(
    {"awaitTermination", "exception", "isActive", "lastProgress", "processAllAvailable", "recentProgress", "status"}
)


class Capture(Handler):
    """Keeps the last query of each name that an application would start."""

    def __init__(self, file: Path, capture_again: Callable[[], Capture], loops: set[object]) -> None:
        self.starts: dict[str, Start] = {}
        self._supervision = _Supervision(loops)
        self.definitions: dict[str, StreamDefinition] = {}
        self._file = file
        self._capture_again = capture_again

    def start(self, start: Start) -> NotStarted:
        definition = definition_of(start, ApplicationCode(self._file, lambda spark: spark))
        name = start.given.name or start.table or start.given.options.get("path", "")
        if start.given.format == "memory":
            # Spark creates the view at the start, and the program may read it.
            start.frame.sparkSession.createDataFrame([], start.frame.schema).createOrReplaceTempView(name)
        if definition is not None:
            identity = definition.sink.identity()
            name = apart(
                definition,
                lambda name: name in self.starts and not is_same_sink(self.definitions[name].sink.identity(), identity),
            )
            if name not in self.starts:
                self._supervision.restart()
            code = ApplicationCode(self._file, self._again(name))
            self.starts[name] = start
            sink = RecognisedSink(lambda: self.starts[name], identity)
            self.definitions[name] = replace(definition, name=name, function=code, sink=sink)
        self._supervision.noticed("start", name)
        return NotStarted(start.given.name, lambda asked: self._supervision.noticed(asked, name))

    def _again(self, name: str) -> Callable[[Any], DataFrame]:
        def again(_spark: Any) -> DataFrame:
            found = self._capture_again()
            if name not in found.starts:
                raise PipelineError(
                    "stream-undefined",
                    f"The application no longer starts query {name}",
                    where=str(self._file),
                    hint="start the query in each run of the application, or restart the run without it",
                )
            self.starts[name] = found.starts[name]
            return found.starts[name].frame

        return again

    def replacements(self) -> Mapping[type, Mapping[str, Callable[..., Any]]]:
        return {
            SESSION: {"stop": _nothing},
            CONTEXT: {"stop": _nothing},
            MANAGER: {"awaitAnyTermination": self._await_any, "active": self._active},
        }

    def _await_any(self, _original: object, _manager: object, timeout: float | None = None) -> bool | None:
        self._supervision.noticed("awaitAnyTermination")
        return None if timeout is None else True

    def _active(self, original: Callable[[Any], Any], manager: object) -> Any:
        self._supervision.noticed("active")
        return original(manager)


def captured(reference: str, ledger: Ledger | None, given: SessionOptions) -> LoadedPipeline:
    """Starts Spark as the application does.

    A query with a recorded checkpoint gets that stream's name. Raises PipelineError if the application fails before its
    first query, or starts none.
    """
    file, _ = locate(reference)
    found = _capture(reference, file, set(), given)
    if not found.definitions:
        raise PipelineError(
            "application-queries",
            "The application started no streaming query that keeps a checkpoint",
            where=str(file),
            expected='a query with .option("checkpointLocation", ...), started in this process with these arguments',
            found="none",
            hint="give the application its own arguments after --",
        )
    definitions = [as_known(one, ledger) for one in found.definitions.values()]
    return LoadedPipeline(
        ApplicationQueries(definitions), sys.modules["__main__"], full_reference(reference), file, (), runs_itself=True
    )


def _capture(reference: str, file: Path, loops: set[object], given: SessionOptions) -> Capture:
    capture = Capture(file, lambda: _capture(reference, file, loops, given), loops)
    threads = OwnThreads()
    # Standard output is for the document of the command, such as JSON; the program's own output must not be in it.
    with intercepted(capture, threads), redirect_stdout(sys.stderr):
        try:
            run_code(reference, threads, given)
        except SystemExit as end:
            # With its queries read, the exit code does not matter: the program may need results of these queries.
            if end.code not in (None, 0) and not capture.definitions:
                error = _fails(file, end)
                again = command("check", reference_of(split_reference(reference)[0], ["ARGUMENTS"]))
                error.hint = f"give the application its own arguments: {again}; --pipeline takes them in the same way"
                raise error from end
        except SlackwaterError:
            raise
        except Exception as error:
            raise _fails(file, error) from error
    return capture


def _fails(file: Path, error: BaseException) -> PipelineError:
    return PipelineError(
        "application-fails",
        f"The application fails before its queries are known: {first_line(error)}",
        where=place_in(file, error),
        hint="reading the queries starts none: the application must end without their rows, tables and progress",
    )


def _nothing(*_: object) -> None: ...


class NotStarted(SimpleNamespace):
    """A query that ended at once without data. ``asked`` is called with each queried state."""

    def __init__(self, name: str | None, asked: Callable[[str], None]) -> None:
        identifier = str(uuid.uuid4())
        super().__init__(
            name=name,
            id=identifier,
            runId=identifier,
            isActive=False,
            lastProgress=None,
            recentProgress=[],
            status={"message": "not started", "isDataAvailable": False, "isTriggerActive": False},
            awaitTermination=lambda timeout=None: None if timeout is None else True,
            processAllAvailable=_nothing,
            stop=_nothing,
            exception=_nothing,
            explain=_nothing,
            _asked=asked,
        )

    def __getattribute__(self, name: str) -> Any:
        if name in _ASKED:
            super().__getattribute__("_asked")(name)
        return super().__getattribute__(name)


class _Supervision:
    """Ends a program that only repeats the same lines with one query. ``loops`` are known from an earlier reading."""

    def __init__(self, loops: set[object]) -> None:
        self._loops = loops
        self._seen: dict[object, tuple[int, float]] = {}

    def restart(self) -> None:
        self._seen.clear()

    def noticed(self, what: str, name: str = "") -> None:
        """Raises SystemExit if the program does nothing else any more."""
        calls = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(None))
        # Frames outside of the program are left out: they differ when it is read again.
        loop = (what, name, tuple(takewhile(lambda call: call[0] != application.__file__, calls)))
        now = time.monotonic()
        count, first = self._seen.get(key := (threading.get_ident(), loop), (0, now))
        self._seen[key] = (count + 1, first)
        if count >= REPEATS_MAX or now - first >= _REPEATED_S_MAX:
            log.warning(
                "the program waits for its queries in a loop: what it does after it is not read", where=calling_line()
            )
            self._loops.add(loop)
        if count and loop in self._loops:
            raise SystemExit(0)
