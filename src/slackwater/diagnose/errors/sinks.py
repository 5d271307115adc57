"""Functions of users and tables that get a batch twice (SINK-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level

GROUP = (
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
    ErrorText(
        "table-changed-concurrently",
        ("SINK-07",),
        (
            "by a concurrent update. Please try the operation again",
            "ConcurrentAppendException",
            "ConcurrentDeleteReadException",
            "ConcurrentDeleteDeleteException",
            "ConcurrentWriteException",
            "ProtocolChangedException",
            "MetadataChangedException",
            "DELTA_CONCURRENT_APPEND",
            "DELTA_CONCURRENT_DELETE",
            "DELTA_CONCURRENT_WRITE",
            "DELTA_METADATA_CHANGED",
            "DELTA_PROTOCOL_CHANGED",
            "org.apache.iceberg.exceptions.CommitFailedException",
            "Found conflicting files that can contain records matching",
            "HoodieWriteConflictException",
            "Lock wait timeout exceeded",
            "deadlock detected",
            "Deadlock found when trying to get lock",
            "was deadlocked on lock resources",
            "could not serialize access due to",
            "Cannot resolve conflicts for overlapping writes",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "rows-do-not-fit-table",
        ("SINK-08",),
        (
            "A schema mismatch detected when writing to the Delta table",
            "DELTA_METADATA_MISMATCH",
            "DELTA_FAILED_TO_MERGE_FIELDS",
            "Failed to merge fields",
            "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
            "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
            "INCOMPATIBLE_DATA_FOR_TABLE",
            "INSERT_COLUMN_ARITY_MISMATCH",
            "CAST_OVERFLOW_IN_TABLE_INSERT",
            "Cannot write incompatible data to table",
            "Cannot write incompatible dataset to table",
            "violates not-null constraint",
            "violates check constraint",
            "violates foreign key constraint",
            "value too long for type",
        ),
        certainty=Certainty.LIKELY,
    ),
)
