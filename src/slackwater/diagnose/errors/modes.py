"""Triggers, asynchronous progress tracking, continuous and real-time mode (MODE-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import ErrorText, Level

GROUP = (
    ErrorText(
        "limit-ignored-by-once",
        ("MODE-01",),
        ("is ignored when Trigger.Once is used",),
        level=Level.NOTE,
    ),
    ErrorText(
        "asynchronous-progress-refused",
        ("MODE-02",),
        (
            "Async progress tracking cannot be used with",
            "does not support async progress tracking",
            "STREAMING_ASYNC_OPERATION_FAILED",
            "ASYNC_PROGRESS_TRACKING_NOT_SUPPORTED",
        ),
    ),
    ErrorText(
        "continuous-offsets-in-batches",
        ("MODE-04",),
        (
            'WatermarkTracker.currentWatermark()" because the return value of',
            'java.lang.NumberFormatException: For input string: "{"0":{"value":',
        ),
    ),
    ErrorText(
        "continuous-task-retried",
        ("MODE-05",),
        (
            "Continuous execution does not support task retry",
            "ContinuousTaskRetryException",
            "Batch <batch> was committed without end epoch offsets",
        ),
    ),
    ErrorText("real-time-mode-refused", ("MODE-06",), ("STREAMING_REAL_TIME_MODE",)),
)
