"""Functions of users and tables that get a batch twice (SINK-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level

GROUP = (
    ErrorText(
        "batch-function-failed",
        ("SINK-03",),
        (
            "FOREACH_BATCH_USER_FUNCTION_ERROR",
            "FOREACH_USER_FUNCTION_ERROR",
            "An exception was raised by the Python Proxy",
        ),
        level=Level.WRAPPER,
    ),
    ErrorText(
        "batch-id-already-used",
        ("SINK-06",),
        (
            "Skipping already committed batch <any> for streaming query",
            "Skipping already completed batch <batch> in query <id>",
        ),
        level=Level.NOTE,
    ),
    ErrorText(
        "failed-batch-skipped",
        ("STATE-10",),
        ("Ignore the exception and move on streaming", "Ignore the errors and move on streaming"),
        level=Level.NOTE,
    ),
    ErrorText(
        "row-already-in-table",
        ("SINK-04",),
        (
            "duplicate key value violates unique constraint",
            "Violation of PRIMARY KEY constraint",
            "ORA-00001: unique constraint",
            "SQLIntegrityConstraintViolationException: Duplicate entry",
        ),
        certainty=Certainty.LIKELY,
    ),
)
