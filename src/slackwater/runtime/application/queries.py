"""An application's streams: name, sink and checkpoint of each query.

A query restarted with a different checkpoint is refused: it would write all rows again. It is known by its name or its
output's place. A function's query is known only by its checkpoint, whose path may vary: by application id, or in a
temporary directory.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from slackwater.checkpoint.logs import read_logs
from slackwater.core.commands import command
from slackwater.core.errors import PipelineError, Refused, SlackwaterError
from slackwater.core.program import Program, parsed_program
from slackwater.core.records import STREAM_NAME, WATCHED
from slackwater.core.sink import Identity
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.workspace import record_move, stream_with
from slackwater.runtime.application.writers import Start
from slackwater.runtime.loader import digest, locate
from slackwater.runtime.pipeline import Pipeline, StreamDefinition
from slackwater.runtime.run.before_start import program_digest
from slackwater.runtime.run.failures import NOT_THE_USERS
from slackwater.runtime.run.query import ApplicationCode, check_query
from slackwater.sinks.common.changes import unsupported
from slackwater.sinks.common.contract import Sink, of_any_query
from slackwater.sinks.common.registry import is_same_sink, open_output, recognised
from slackwater.storage.open import check_no_secret, open_read_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from slackwater.core.records import StreamRecord
    from slackwater.core.sink import Traits, WriteContext
    from slackwater.runtime.run.query import BuiltStream


LENGTH_MAX = 100
"""The longest name that ``STREAM_NAME`` matches."""


class ApplicationQueries(Pipeline):
    """An application's queries as streams of the pipeline ``watched``."""

    def __init__(self, definitions: Iterable[StreamDefinition]) -> None:
        self.name = WATCHED
        self.connectors = ()
        self._streams = {one.name: one for one in definitions}
        self._audit_readers = {}


@dataclass(frozen=True, slots=True)
class RecognisedSink(Sink):
    """An application's own writer; Spark writes with its settings.

    ``given`` returns the newest start of the query, ``into`` is a staged output's path.
    """

    given: Callable[[], Start]
    recognised: Identity
    into: str | None = None

    @property
    def called(self) -> object | None:
        return self.given().function

    @property
    def kind(self) -> str:
        return self.recognised["kind"]

    @property
    def traits(self) -> Traits:
        output = open_output(self.recognised)
        return replace(output.traits, cuts=of_any_query(output).traits.cuts)

    def identity(self) -> Identity:
        return self.recognised

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        start = self.given()
        attached = start.onto(writer)
        return attached if self.into is None else attached.format(start.calls.format).option("path", self.into)

    def start(self, writer: DataStreamWriter, context: WriteContext, /) -> StreamingQuery:
        table, attached = self.given().table, self.attach(writer, context)
        return attached.start() if table is None or self.into is not None else attached.toTable(table)

    def staged(self, operation: str, /) -> RecognisedSink:
        path = of_any_query(open_output(self.recognised)).staged_path(operation)
        if path is None:
            raise unsupported(
                self.kind, "files of Spark's own file sink, or a table that Slackwater can change", self.kind
            )
        return replace(self, into=path)


def definition_of(start: Start, code: ApplicationCode) -> StreamDefinition | None:
    """The stream definition of a query, or ``None`` if Spark would delete its checkpoint.

    Raises PipelineError if the name cannot be a folder's.
    """
    checkpoint = start.checkpoint
    if checkpoint is None:
        return None
    check_no_secret(checkpoint)
    identity = recognised(start.calls)
    given = start.given
    name = given.name or _names_of(place_of(identity) or checkpoint)[0]
    if STREAM_NAME.fullmatch(name) is None:
        raise PipelineError(
            "stream-name",
            "Invalid stream name of this query: it must be usable as a folder name",
            expected="letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100",
            found=repr(name),
            hint="give the query such a name with .queryName(...)",
        )
    sink, location = RecognisedSink(lambda: start, identity), checkpoint
    if checkpoint.startswith("file:"):
        location = "/" + checkpoint.removeprefix("file:").lstrip("/")
    elif "://" not in checkpoint:
        location = os.path.normpath(Path(checkpoint).absolute())
    return StreamDefinition(WATCHED, name, code, sink, given.mode, given.trigger, given.partition_by, location)


def as_known(definition: StreamDefinition, ledger: Ledger | None) -> StreamDefinition:
    """The stream recorded for the checkpoint, by adoption or query id.

    Raises Refused (``query-checkpoint``) if the name or the checkpoint belongs to a different stream.
    """
    if ledger is None or definition.checkpoint is None:
        return definition
    known = stream_with(ledger, definition.name, definition.checkpoint)
    if known is not None:
        return replace(definition, name=known.name)
    definition = replace(definition, name=name_beside(ledger, definition))
    if definition.full_name not in ledger.stream_names():
        return definition
    other = ledger.stream(definition.full_name)
    raise Refused(
        "query-checkpoint",
        f"Stream {definition.full_name} has a different checkpoint: two queries have one name, or a checkpoint moved",
        expected=ledger.generation(other.full_name, other.current_generation).location,
        found=definition.checkpoint,
        hint="give the query a new name with .queryName(...), or run the application with a home of its own: --home",
    )


def settle_place(definition: StreamDefinition, ledger: Ledger) -> None:
    """Record a moved checkpoint; the caller holds the lease. Raises Refused if a different process was faster."""
    if as_known(definition, ledger).name != definition.name:
        raise Refused(
            "query-checkpoint",
            f"Another process recorded a stream while query {definition.name} was started",
            where=definition.checkpoint,
            expected=f"no other stream {definition.full_name}, and none with this checkpoint",
            hint="start the program again",
        )
    if definition.full_name in ledger.stream_names():
        record_move(ledger, ledger.stream(definition.full_name), str(definition.checkpoint))


def name_beside(ledger: Ledger, definition: StreamDefinition) -> str:
    recorded = frozenset(ledger.stream_names())
    return apart(definition, lambda name: f"{WATCHED}/{name}" in recorded and _is_other(ledger, name, definition))


def apart(definition: StreamDefinition, is_others: Callable[[str], bool]) -> str:
    """The query's name, extended by its output's path if a different query has it. A ``queryName`` is never changed."""
    names = _names_of(place_of(definition.sink.identity()) or definition.checkpoint or "")
    if definition.name not in names:
        return definition.name
    return next((one for one in names[names.index(definition.name) :] if not is_others(one)), definition.name)


def _is_other(ledger: Ledger, name: str, definition: StreamDefinition) -> bool:
    stream, identity = ledger.stream(f"{WATCHED}/{name}"), definition.sink.identity()
    if not is_same_sink(stream.sink, identity):
        return True
    code = definition.function
    if place_of(identity) is not None or not isinstance(code, ApplicationCode):
        return False
    try:
        return locate(stream.pipeline_file)[0] != code.file
    except SlackwaterError:
        return False


def place_of(identity: Identity) -> str | None:
    return identity.get("path") or identity.get("name") or identity.get("topic")


def _names_of(output: str) -> list[str]:
    parts = [re.sub(r"[^A-Za-z0-9._-]", "_", part).lstrip("._-") for part in output.rstrip("/").split("/")]
    longer = ["_".join(filter(None, parts[-count:])) for count in range(2, len(parts) + 1)]
    return [
        parts[-1][:LENGTH_MAX],
        *dict.fromkeys(one for one in longer if len(one) <= LENGTH_MAX and one != parts[-1]),
    ]


class QueryRefused(PipelineError, AnalysisException):
    """Also an AnalysisException, so that applications that handle Spark's refusal handle it."""


def refuse_unsupported(definition: StreamDefinition, frame: DataFrame) -> None:
    try:
        check_query(definition, frame)
    except PipelineError as error:
        refused = QueryRefused(
            error.code, error.message, where=calling_line(), expected=error.expected, found=error.found, hint=error.hint
        )
        raise refused from error


def calling_line() -> str | None:
    calls = reversed(traceback.extract_stack())
    own = (call for call in calls if not any(part in call.filename for part in NOT_THE_USERS))
    return next((f"{call.filename}:{call.lineno}" for call in own), None)


def refuse_repeated(built: BuiltStream, reference: str, ledger: Ledger, started: Container[str]) -> None:
    """Raises Refused (``query-checkpoint``) if the program ran the same query with a different checkpoint.

    ``started`` as in ``repeated``. A checkpoint with batches continues.
    """
    definition = built.definition
    if definition.full_name in ledger.stream_names():
        return
    same = repeated(built, reference, ledger, started)
    if same is not None and read_logs(open_read_store(str(definition.checkpoint))).planned < 0:
        raise Refused(
            "query-checkpoint",
            f"The query of stream {same.full_name} is started with a new checkpoint, and would write all rows again",
            where=calling_line(),
            expected=ledger.generation(same.full_name, same.current_generation).location,
            found=definition.checkpoint,
            hint="give it the same checkpointLocation at each start; another query gets a name by .queryName(...); "
            f"where all rows are to be written again, {command('release', same.full_name)} forgets the recorded one",
        )


def repeated(built: BuiltStream, reference: str, ledger: Ledger, started: Container[str]) -> StreamRecord | None:
    """The known stream that this query repeats.

    Both have the same program file, arguments and kind of output, and the same code and plan or, after an edit, the
    same sources and values of the batch function. ``started`` are different queries of this process.
    """
    identity = built.definition.sink.identity()
    if place_of(identity) is not None or built.definition.sink.traits.delivery.guarantee == "none":
        return None
    before = [
        one
        for one in ledger.streams()
        if one.is_watched and one.pipeline_file == reference and one.sink == identity and one.full_name not in started
    ]
    made_by = (digest(reference), program_digest(built.program))
    for stream in before:
        last = ledger.last_run(stream.full_name)
        is_same = last is not None and (last.code, last.program) == made_by
        generation = ledger.generation(stream.full_name, stream.current_generation)
        recorded, program = parsed_program(generation.programs, sys.maxsize), built.program
        is_edited = (
            recorded is not None
            and (program is not None and program.values)
            and _identity(recorded) == _identity(program)
        )
        if (is_same or is_edited) and ledger.entries(stream.full_name, "offsets"):
            return stream
    return None


def _identity(program: Program) -> tuple[object, ...]:
    return [(source.kind, source.location) for source in program.sources], program.output_mode, program.values
