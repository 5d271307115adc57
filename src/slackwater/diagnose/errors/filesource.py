"""Spark's file source and its log (FSRC-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level

GROUP = (
    ErrorText(
        "source-compact-missing",
        ("FSRC-02",),
        (
            "<path>/sources/<source>/<batch>.compact doesn't exist (latestId: <latest>, compactInterval: <interval>)",
            "Unable to find batch <path>/sources/<source>/<batch>",
            "<path>/sources/<source>/<file> doesn't exist when compacting batch <batch>",
        ),
    ),
    ErrorText(
        "source-log-damaged",
        ("FSRC-02",),
        (
            "Failed to read log file <path>/sources/<source>/<batch>.compact. Incomplete log file",
            "Failed to read log file <path>/sources/<source>/<batch>. Incomplete log file",
            "Failed to read log file <path>/sources/<source>/<any>Log file was malformed",
        ),
    ),
    ErrorText(
        "source-folder-missing",
        ("MOVE-04",),
        ("Path does not exist: <path>", "PATH_NOT_FOUND"),
        certainty=Certainty.LIKELY,
        needs=("fetchAllFiles", "DataStreamReader", "readStream"),
    ),
    ErrorText(
        "file-names-only",
        ("FSRC-08",),
        ("'fileNameOnly' is enabled. Make sure your file names are unique",),
        level=Level.NOTE,
    ),
    ErrorText(
        "clean-source-refused",
        ("FSRC-09",),
        (
            "Clean up source files is not supported when reading from the output directory",
            "Archive mode must be used with 'sourceArchiveDir' option",
        ),
    ),
)
