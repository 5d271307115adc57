"""Reads the queries of an application: its file is run up to each start of a query, and none is started.

What the file does besides that happens: it reads its configuration and creates its session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slackwater.core.commands import command
from slackwater.core.errors import PipelineError, SlackwaterError
from slackwater.core.reference import reference_of, split_reference
from slackwater.runtime.application.launch import OwnThreads, run_code
from slackwater.runtime.application.queries import ApplicationCode, ApplicationQueries, as_known, definition_of
from slackwater.runtime.application.supervision import NotStarted, Supervision, nothing
from slackwater.runtime.application.writers import CONTEXT, MANAGER, SESSION, Start, intercepted
from slackwater.runtime.loader import LoadedPipeline, full_reference, locate, place_in
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.sinks.common.written import RecognisedSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from slackwater.ledger.ledger import Ledger
    from slackwater.sinks.common.contract import Startable


class Capture:
    """Keeps the queries that an application would start, the last one of each name."""

    def __init__(self, file: Path, capture_again: Callable[[], Capture], loops: set[object]) -> None:
        self.starts: dict[str, Start] = {}
        self._supervision = Supervision(loops)
        self.definitions: dict[str, StreamDefinition] = {}
        self._file = file
        self._capture_again = capture_again

    def start(self, start: Start) -> NotStarted:
        """Keep the query."""
        definition = definition_of(start, ApplicationCode(self._file, lambda spark: spark))
        name = start.given.name or start.table or start.given.options.get("path", "")
        if definition is not None:
            name = definition.name
            if name not in self.starts:
                self._supervision.restart()
            code = ApplicationCode(self._file, self._again(name))
            self.starts[name] = start
            sink = RecognisedSink(_Newest(self.starts, name), definition.sink.identity())
            self.definitions[name] = replace(definition, function=code, sink=sink)
        self._supervision.noticed("start", name)
        return NotStarted(start.given.name, lambda asked: self._supervision.noticed(asked, name))

    def _again(self, name: str) -> Callable[[Any], DataFrame]:
        def again(_spark: Any) -> DataFrame:
            found = self._capture_again()
            if name not in found.starts:
                raise PipelineError(
                    "stream-undefined", f"The application no longer starts query {name}", where=str(self._file)
                )
            self.starts[name] = found.starts[name]
            return found.starts[name].frame

        return again

    def replacements(self) -> Mapping[type, Mapping[str, Callable[..., Any]]]:
        """The session stays; nothing is awaited."""
        return {
            SESSION: {"stop": nothing},
            CONTEXT: {"stop": nothing},
            MANAGER: {"awaitAnyTermination": self._await_any, "active": self._active},
        }

    def _await_any(self, _original: object, _manager: object, timeout: float | None = None) -> bool | None:
        self._supervision.noticed("awaitAnyTermination")
        return None if timeout is None else True

    def _active(self, original: Callable[[Any], Any], manager: object) -> Any:
        self._supervision.noticed("active")
        return original(manager)


@dataclass(frozen=True, slots=True)
class _Newest:
    """What the writer of a query was given when the application was run last: its functions are of that session."""

    starts: Mapping[str, Start]
    name: str

    def onto(self, writer: DataStreamWriter, /, path: str | None = None) -> Startable:
        """Another writer, given the same."""
        return self.starts[self.name].onto(writer, path)


def captured(reference: str, ledger: Ledger | None) -> LoadedPipeline:
    """The queries of an application as a pipeline. Starts Spark as the application does.

    A query whose checkpoint the ledger has is the stream by that name. Raises PipelineError where the application
    fails before its first query, or starts none.
    """
    file, _ = locate(reference)
    found = _capture(reference, file, set())
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
        ApplicationQueries(definitions),
        sys.modules["__main__"],
        full_reference(reference),
        file,
        (),
        runs_itself=True,
    )


def _capture(reference: str, file: Path, loops: set[object]) -> Capture:
    capture = Capture(file, lambda: _capture(reference, file, loops), loops)
    threads = OwnThreads()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with intercepted(capture, threads), redirect_stdout(sys.stderr):
        try:
            run_code(reference, threads)
        except SystemExit as end:
            if end.code not in (None, 0) and not capture.definitions:
                raise _ended(reference, file, end) from end
        except (KeyboardInterrupt, SlackwaterError):
            raise
        except Exception as error:
            raise _fails(file, error) from error
    return capture


def _ended(reference: str, file: Path, end: SystemExit) -> PipelineError:
    """For an application that has ended itself, as argparse does for arguments that it does not take."""
    error = _fails(file, end)
    code, _ = split_reference(reference)
    named = reference_of(code, ["ARGUMENTS"])
    error.hint = f"give the application its own arguments: {command('check', named)}; --pipeline takes them so, too"
    return error


def _fails(file: Path, error: BaseException) -> PipelineError:
    return PipelineError(
        "application-fails",
        f"The application fails before its queries are known: {type(error).__name__}: {error}".splitlines()[0],
        where=place_in(file, error),
        hint="the queries are read by running the application without starting any: what it expects of a query that "
        "has run must not be needed for the next one",
    )
