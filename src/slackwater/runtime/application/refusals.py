"""Refuses an unsupported query of an application before anything is created for it, like a stream of a pipeline."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from slackwater.core.errors import PipelineError
from slackwater.runtime.failures import NOT_THE_USERS
from slackwater.runtime.query import check_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.runtime.pipeline import StreamDefinition


class QueryRefused(PipelineError, AnalysisException):
    """The query is unsupported. An AnalysisException too: an application that handles Spark's refusal handles this."""


def refuse_unsupported(definition: StreamDefinition, frame: DataFrame) -> None:
    """Raises QueryRefused, with the line of the application that starts the query."""
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
    """The innermost line of this thread's stack that is neither of a library nor of Slackwater."""
    calls = reversed(traceback.extract_stack())
    own = (call for call in calls if not any(part in call.filename for part in NOT_THE_USERS))
    return next((f"{call.filename}:{call.lineno}" for call in own), None)
