"""Several queries on one checkpoint or one output (SHARE-*), and what looks like it (LOG-07)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Near

_PLANNING = ("markMicroBatchStart", "constructNextBatch")
_COMMITTING = ("markMicroBatchEnd",)

GROUP = (
    ErrorText(
        "concurrent-update",
        ("SHARE-01", "LOG-07"),
        (
            "Concurrent update to the commit log. Multiple streaming jobs detected for <batch>",
            "Concurrent update to the log. Multiple streaming jobs detected for <batch>",
        ),
        names=("CONCURRENT_STREAM_LOG_UPDATE",),
        near=(
            # Commits without offsets are met after a batch only; an entry to plan that exists was written by another.
            Near(_COMMITTING, ("LOG-07", "SHARE-01")),
            Near(_PLANNING, ("SHARE-01",), Certainty.LIKELY),
        ),
    ),
    ErrorText(
        "bare-assertion",
        ("LOG-07",),
        ("java.lang.AssertionError: assertion failed<eol>",),
        certainty=Certainty.POSSIBLE,
        needs=("MicroBatchExecution", "StreamExecution", "Execution of the stream", "Query [id", "OffsetSeq."),
        # Spark before 2.4 compares the sources with the offsets here, without a message.
        near=(Near(("OffsetSeq.toStreamProgress",), ("CHG-01",), Certainty.LIKELY),),
    ),
    ErrorText(
        "files-used-concurrently",
        ("SHARE-01",),
        ("Multiple streaming queries are concurrently using <path>",),
    ),
    ErrorText(
        "checkpoint-of-another-query",
        ("SHARE-01",),
        ("multiple streaming queries are using the same checkpoint to write into this table",),
    ),
    ErrorText(
        "query-already-active",
        ("SHARE-02",),
        (
            "Cannot start query with id <id> as another query with same id is already active",
            "Another instance of this query <any>was just started by a concurrent session",
            "CONCURRENT_QUERY",
        ),
    ),
    ErrorText(
        "sink-batch-race",
        ("SHARE-04",),
        (
            "Race while writing batch <batch>",
            "another writer already committed this batch",
        ),
    ),
    ErrorText(
        "query-name-taken",
        ("SHARE-05",),
        ("Cannot start query with name <name> as a query with that name is already active",),
    ),
    ErrorText(
        "schema-location-shared",
        ("SHARE-06",),
        (
            "Detected conflicting schema location '<path>' while streaming from table",
            "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
        ),
    ),
)
