"""Reads the queries of an application: its file is run up to each start of a query, and none is started.

What the file does besides that happens: it reads its configuration and creates its session.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from slackwater.core.commands import command
from slackwater.core.errors import PipelineError, SlackwaterError
from slackwater.core.reference import reference_of, split_reference
from slackwater.runtime.application.launch import OwnThreads, run_code
from slackwater.runtime.application.queries import ApplicationCode, ApplicationQueries, as_known, definition_of
from slackwater.runtime.application.writers import CONTEXT, MANAGER, SESSION, Start, intercepted
from slackwater.runtime.loader import LoadedPipeline, full_reference, locate, place_in
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.sinks.common.written import RecognisedSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from slackwater.ledger.ledger import Ledger
    from slackwater.sinks.common.contract import Startable


def not_started(name: str | None) -> SimpleNamespace:
    """What an application is given in place of a query: one that has ended at once, with nothing to process."""
    identifier = str(uuid.uuid4())
    return SimpleNamespace(
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
    )


class Capture:
    """Keeps the queries that an application would start, the last one of each name."""

    def __init__(self, file: Path, capture_again: Callable[[], Capture]) -> None:
        self.starts: dict[str, Start] = {}
        self.definitions: dict[str, StreamDefinition] = {}
        self._file = file
        self._capture_again = capture_again

    def start(self, start: Start) -> SimpleNamespace:
        """Keep the query."""
        definition = definition_of(start, ApplicationCode(self._file, lambda spark: spark))
        if definition is not None:
            name = definition.name
            code = ApplicationCode(self._file, self._again(name))
            self.starts[name] = start
            sink = RecognisedSink(_Newest(self.starts, name), definition.sink.identity())
            self.definitions[name] = replace(definition, function=code, sink=sink)
        return not_started(start.given.name)

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
            SESSION: {"stop": _nothing},
            CONTEXT: {"stop": _nothing},
            MANAGER: {"awaitAnyTermination": _awaited},
        }


@dataclass(frozen=True, slots=True)
class _Newest:
    """What the writer of a query was given when the application was run last: its functions are of that session."""

    starts: Mapping[str, Start]
    name: str

    def onto(self, writer: DataStreamWriter, /, path: str | None = None) -> Startable:
        """Another writer, given the same."""
        return self.starts[self.name].onto(writer, path)


def _nothing(*_: object) -> None:
    """In place of a ``stop``."""


def _awaited(_original: object, _manager: object, timeout: float | None = None) -> bool | None:
    return None if timeout is None else True


def captured(reference: str, ledger: Ledger | None) -> LoadedPipeline:
    """The queries of an application as a pipeline. Starts Spark as the application does.

    A query whose checkpoint the ledger has is the stream by that name. Raises PipelineError where the application
    fails before its first query, or starts none.
    """
    file, _ = locate(reference)
    found = _capture(reference, file)
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


def _capture(reference: str, file: Path) -> Capture:
    capture = Capture(file, lambda: _capture(reference, file))
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
