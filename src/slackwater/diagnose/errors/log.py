"""Offset log, commit log and ``metadata`` of a checkpoint (LOG-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

_OFFSETS = ("OffsetSeqLog", "OffsetSeq$", "OffsetSeqMetadata")
_COMMITS = ("CommitLog", "CommitMetadata")
_SINK = ("FileStreamSinkLog", "ManifestFileCommitProtocol", "SinkFileStatus")
_SOURCE = ("SourceLog.", "SourceLog$")
_ANY_LOG = (
    Near(_COMMITS, ("LOG-05",), Certainty.LIKELY),
    Near(_SINK, ("FSINK-03",), Certainty.LIKELY),
    Near(_SOURCE, ("FSRC-02",), Certainty.LIKELY),
)
"""Which log it is where the message does not name the file: the frames of the trace do."""

GROUP = (
    ErrorText(
        "offset-entry-empty",
        ("LOG-01",),
        ("Failed to read log file <path>/offsets/<batch>. Incomplete log file",),
    ),
    ErrorText(
        "commit-entry-damaged",
        ("LOG-05",),
        (
            "Failed to read log file <path>/commits/<batch>. Incomplete log file",
            "Failed to read log file <path>/commits/<batch>. Log file was malformed",
            "Failed to read log file <path>/commits/<batch>. [MALFORMED_LOG_FILE]",
            "Incomplete log file in the offset commit log",
            "ChecksumException: Checksum error: <path>/commits/<batch>",
        ),
    ),
    ErrorText(
        "log-entry-empty",
        ("LOG-01", "LOG-05", "FSRC-02", "FSINK-03"),
        ("Incomplete log file",),
        certainty=Certainty.POSSIBLE,
        near=(Near(_OFFSETS, ("LOG-01",), Certainty.LIKELY), *_ANY_LOG),
    ),
    ErrorText(
        "offset-entry-cut",
        ("LOG-02",),
        ("java.util.NoSuchElementException: next on empty iterator",),
        certainty=Certainty.POSSIBLE,
        near=(Near(_OFFSETS, ("LOG-02",), Certainty.LIKELY),),
    ),
    ErrorText(
        "offset-entry-malformed",
        ("LOG-03",),
        (
            "Failed to read log file <path>/offsets/<batch>. Log file was malformed",
            "Failed to read log file <path>/offsets/<batch>. [MALFORMED_LOG_FILE]",
        ),
    ),
    ErrorText(
        "log-entry-malformed",
        ("LOG-03", "LOG-05", "FSINK-03", "FSRC-02"),
        ("Log file was malformed: failed to read correct log version from", "MALFORMED_LOG_FILE"),
        near=(Near(_OFFSETS, ("LOG-03",)), *_ANY_LOG),
    ),
    ErrorText(
        "log-entry-edited",
        ("LOG-11", "LOG-03"),
        ("ChecksumException: Checksum error: <path>/offsets/<batch>",),
    ),
    ErrorText(
        "log-json-cut",
        ("LOG-03", "LOG-05", "FSINK-03", "FSRC-02"),
        ("JsonEOFException: Unexpected end-of-input",),
        certainty=Certainty.POSSIBLE,
        near=(
            Near(("StreamMetadata",), ("LOG-13",), Certainty.LIKELY),
            Near(_OFFSETS, ("LOG-03",), Certainty.LIKELY),
            *_ANY_LOG,
        ),
    ),
    ErrorText(
        "batch-missing-in-log",
        ("LOG-06", "FSRC-01", "MODE-03"),
        (
            "The offset log for batch <batch> doesn't exist, which is required to restart",
            "java.lang.IllegalStateException: batch <batch> doesn't exist",
            "requirement failed: Previous batch <batch> not found in offset log",
            "batch <batch> doesn't exist<eol>",
        ),
        near=(
            Near(("AsyncProgressTracking", "asyncProgressTracking"), ("MODE-03", "LOG-06")),
            Near(("The offset log for batch", "not found in offset log"), ("LOG-06", "MODE-03")),
            # Logs other than the offset log compare the ids of a range here.
            Near(("verifyBatchIds",), ("FSRC-01",)),
        ),
    ),
    ErrorText(
        "batches-missing-in-log",
        ("LOG-06", "FSRC-01"),
        ("don't exist (startId: <any>, endId: <any>)",),
        near=(Near(_SOURCE, ("FSRC-01",)),),
    ),
    ErrorText(
        "history-not-kept",
        ("LOG-10",),
        (
            "The offset log for <batch> does not exist, checkpoint location: <path>",
            "STDS_OFFSET_LOG_UNAVAILABLE",
            "STATE_REPARTITION_INVALID_CHECKPOINT.OFFSET_SEQ_NOT_FOUND",
            "minBatchesToRetain has to be positive",
        ),
    ),
    ErrorText(
        "commits-missing",
        ("LOG-09",),
        (
            "Batch completion log latest batch id is <committed>, which is not trailing batchid <batch> by one",
            "no commit log present",
        ),
        level=Level.NOTE,
    ),
    ErrorText(
        "metadata-missing",
        ("LOG-12", "STORE-04"),
        (
            "Checkpoint location <path> is in an inconsistent state: the metadata file is missing",
            "MISSING_METADATA_FILE",
        ),
    ),
    ErrorText(
        "metadata-damaged",
        ("LOG-13",),
        ("Error reading stream metadata from <path>", "java.lang.IllegalArgumentException: Invalid UUID string: <id>"),
        near=(Near(("StreamMetadata", "stream metadata"), ("LOG-13",), Certainty.CERTAIN),),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "metadata-no-json",
        ("LOG-13", "LOG-03"),
        (
            "MismatchedInputException: No content to map due to end-of-input",
            "JsonParseException: Unrecognized token",
        ),
        certainty=Certainty.POSSIBLE,
        near=(
            Near(("StreamMetadata", "stream metadata"), ("LOG-13",), Certainty.LIKELY),
            Near(_OFFSETS, ("LOG-03",), Certainty.LIKELY),
            *_ANY_LOG,
        ),
    ),
    ErrorText(
        "no-checkpoint-location",
        ("LOG-16",),
        ("checkpointLocation must be specified either through option",),
    ),
    ErrorText(
        "temporary-checkpoint",
        ("LOG-16",),
        ("Temporary checkpoint location created",),
        level=Level.NOTE,
    ),
    ErrorText(
        "sink-cannot-recover",
        ("LOG-17",),
        ("This query does not support recovering from checkpoint location. Delete <path>/offsets to start over",),
    ),
)
