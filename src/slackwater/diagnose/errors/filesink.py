"""Spark's file sink and its log (FSINK-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near
from slackwater.formats.compactible import SINK_LOG

GROUP = (
    ErrorText(
        "sink-compact-missing",
        ("FSINK-01", "FSINK-02", "CHG-04"),
        (f"Unable to find batch <path>/{SINK_LOG}/<batch>.compact",),
    ),
    ErrorText(
        "sink-entry-missing",
        ("FSINK-05", "FSINK-01", "CHG-04"),
        (f"Unable to find batch <path>/{SINK_LOG}/<batch>",),
    ),
    ErrorText(
        "sink-log-gap-at-compaction",
        ("FSINK-01", "FSINK-05", "CHG-04"),
        (f"<path>/{SINK_LOG}/<file> doesn't exist when compacting batch <batch> (compactInterval: <interval>)",),
    ),
    ErrorText(
        "compacted-log-gap",
        ("FSINK-01", "FSINK-02", "FSRC-02"),
        ("BATCH_METADATA_NOT_FOUND", "compacting batch <batch>"),
        near=(Near(("/sources/",), ("FSRC-02",)),),
    ),
    ErrorText(
        "sink-compact-missing-for-readers",
        ("FSINK-02", "FSINK-01"),
        (f"<path>/{SINK_LOG}/<batch>.compact doesn't exist (latestId: <latest>, compactInterval: <interval>)",),
    ),
    ErrorText(
        "sink-log-damaged",
        ("FSINK-03",),
        (
            f"Failed to read log file <path>/{SINK_LOG}/<batch>.compact. Incomplete log file",
            f"Failed to read log file <path>/{SINK_LOG}/<batch>. Incomplete log file",
            f"Failed to read log file <path>/{SINK_LOG}/<any>Log file was malformed",
        ),
    ),
    ErrorText(
        "batch-already-in-sink",
        ("FSINK-04", "SHARE-04"),
        ("Skipping already committed batch <batch>",),
        level=Level.NOTE,
    ),
    ErrorText(
        "schema-not-inferred",
        ("FSINK-01",),
        ("Unable to infer schema for <format>", "UNABLE_TO_INFER_SCHEMA"),
        certainty=Certainty.POSSIBLE,
    ),
    ErrorText(
        "data-file-missing",
        ("FSINK-06", "FSRC-03", "DELTA-06"),
        (
            "java.io.FileNotFoundException: File <path> does not exist <any>It is possible the underlying files",
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file <path>.",
            "FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER",
            "It is possible the underlying files have been updated",
        ),
        certainty=Certainty.POSSIBLE,
        near=(
            Near(("_delta_log", "DeltaSource", "DeltaLog"), ("DELTA-06",)),
            Near(("MicroBatchExecution", "StreamExecution"), ("FSRC-03",)),
        ),
    ),
    ErrorText(
        "output-mode-refused",
        ("FSINK-11",),
        (
            "Data source <format> does not support <mode> output mode",
            "Invalid streaming output mode: <mode>. This output mode is not supported",
            "STREAMING_OUTPUT_MODE.UNSUPPORTED_DATASOURCE",
        ),
    ),
)
