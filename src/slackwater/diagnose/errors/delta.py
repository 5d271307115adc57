"""Delta tables as source and as sink (DELTA-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

GROUP = (
    ErrorText(
        "write-already-in-table",
        ("DELTA-01", "DELTA-02", "DELTA-03"),
        ("Transaction write of version <version> for application id <id> has already been committed",),
        level=Level.NOTE,
    ),
    ErrorText(
        "idempotent-write-options",
        ("DELTA-03",),
        ("DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", "Invalid options for idempotent Dataframe writes"),
    ),
    ErrorText(
        "batch-already-in-table",
        ("DELTA-04", "LOG-15", "SINK-06"),
        ("Skipping already complete epoch <batch>, in query <id>",),
        level=Level.NOTE,
    ),
    ErrorText(
        "source-table-recreated",
        ("DELTA-05",),
        (
            "The streaming query was reading from an unexpected Delta table (id = '<table>')",
            "reading from an unexpected Delta table",
            "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            "Detected incompatible Delta table id when trying to read Delta stream",
            "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
        ),
    ),
    ErrorText(
        "source-versions-cleaned",
        ("DELTA-06",),
        (
            "process data from version <version>,\nbut the earliest available version in the <any> is <earliest>.",
            "The stream from your Delta table was expecting process data from version <version>",
            "Delta stream cannot resume from version <version>; transaction log starts at <earliest>",
            "DELTA_MISSING_FILES_UNEXPECTED_VERSION",
            "DELTA_STREAMING_TRAILING_COMMIT_MISSING",
            "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
            "DELTA_FILE_NOT_FOUND_DETAILED",
            "If you never deleted it, it's likely your query is lagging behind",
            "referenced in the transaction log cannot be found",
        ),
    ),
    ErrorText(
        "source-log-truncated",
        ("DELTA-06",),
        (
            "Unable to reconstruct state at version <version> as the transaction log has been truncated",
            "DELTA_TRUNCATED_TRANSACTION_LOG",
            "No file found in the directory",
            "Cannot time travel Delta table to version <version>. Available versions: [<earliest>",
            "Couldn't find all part files of the checkpoint version: <version>",
            "A gap in the delta log between versions <start> and <end> was detected",
            "DELTA_VERSIONS_NOT_CONTIGUOUS",
            "Did you manually delete files in the _delta_log directory",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "source-table-changed",
        ("DELTA-07",),
        (
            "Detected deleted data (for example <path>) from streaming source at version <version>",
            "Detected a data update (for example <path>) in the source table at version <version>",
            "Detected deleted data (for example",
            "Detected a data update (for example",
            "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
            "DELTA_SOURCE_IGNORE_DELETE",
        ),
    ),
    ErrorText(
        "source-schema-changed",
        ("DELTA-07",),
        (
            "Detected schema change in version <version>",
            "Detected schema change:",
            "DELTA_SCHEMA_CHANGED",
            "Incomplete log file in the Delta streaming source schema log",
            "DELTA_STREAMING_METADATA_EVOLUTION",
            "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE",
            "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
            "DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART",
            "Streaming read is not supported on tables with read-incompatible schema changes",
            "The schema, table configuration or protocol of your Delta table has changed during streaming",
            "The schema of your Delta table has changed in an incompatible way",
            "The schema or metadata tracking log has been updated",
            "We've detected one or more non-additive schema change(s)",
            "Detected incompatible partition schema when trying to read Delta stream",
            "we detected an incompatible schema or protocol change while serving a streaming batch",
        ),
    ),
    ErrorText(
        "source-offset-malformed",
        ("DELTA-07", "CHG-03"),
        ("DELTA_INVALID_SOURCE_OFFSET_FORMAT", "The stored source offset format is invalid"),
        near=(Near(("KafkaSourceOffset", "KafkaOffset"), ("CHG-03",), Certainty.LIKELY),),
    ),
    ErrorText(
        # Such a store is one without an atomic rename: commits of two writers would replace each other.
        "log-store-of-another-store",
        ("APP-09", "STORE-01"),
        ("sql.delta.storage.HDFSLogStore.write", "io.delta.storage.HDFSLogStore.write"),
        needs=("s3://", "s3a://", "s3n://"),
        certainty=Certainty.LIKELY,
    ),
)
