"""Refuses a query restarted with a different checkpoint: it would write all rows again.

A query is known by its name or its output's place. A function's query is known only by its checkpoint, whose path may
vary: by application id, or in a temporary directory.

Also refuses unsupported queries.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Container
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from slackwater.checkpoint.logs import read_logs
from slackwater.core.commands import command
from slackwater.core.errors import PipelineError, Refused
from slackwater.core.program import Program, parsed_program
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.application.queries import place_of
from slackwater.runtime.failures import NOT_THE_USERS
from slackwater.runtime.loader import digest
from slackwater.runtime.query import check_query
from slackwater.runtime.verdict import program_digest
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.core.records import StreamRecord
    from slackwater.runtime.pipeline import StreamDefinition
    from slackwater.runtime.query import BuiltStream


class QueryRefused(PipelineError, AnalysisException):
    """Also an AnalysisException, so that applications that handle Spark's refusal handle it."""


def refuse_unsupported(definition: StreamDefinition, frame: DataFrame) -> None:
    try:
        check_query(definition, frame)
    except PipelineError as error:
        refused = QueryRefused(
            error.code,
            error.message,
            where=calling_line(),
            expected=error.expected,
            found=error.found,
            hint=error.hint,
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
    return next((one for one in before if _was_run_by(ledger, one, made_by) or _is_edited(ledger, one, built)), None)


def _was_run_by(ledger: Ledger, stream: StreamRecord, made_by: tuple[str, str | None]) -> bool:
    last = ledger.last_run(stream.full_name)
    return last is not None and (last.code, last.program) == made_by and _has_batches(ledger, stream)


def _is_edited(ledger: Ledger, stream: StreamRecord, built: BuiltStream) -> bool:
    generation = ledger.generation(stream.full_name, stream.current_generation)
    recorded = parsed_program(generation.programs, sys.maxsize)
    if recorded is None or built.program is None or not built.program.values:
        return False
    return _identity(recorded) == _identity(built.program) and _has_batches(ledger, stream)


def _identity(program: Program) -> tuple[object, ...]:
    return [(source.kind, source.location) for source in program.sources], program.output_mode, program.values


def _has_batches(ledger: Ledger, stream: StreamRecord) -> bool:
    return bool(ledger.entries(stream.full_name, "offsets"))
