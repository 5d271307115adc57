"""Watermarks and chained stateful operators (WM-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import ErrorText

GROUP = (
    ErrorText(
        "late-rows-between-operators",
        ("WM-07",),
        (
            "Detected pattern of possible 'correctness' issue due to global watermark",
            "EMITTING_ROWS_OLDER_THAN_WATERMARK_NOT_ALLOWED",
            "Previous node emitted a row with eventTime=",
            "Multiple streaming aggregations are not supported with streaming",
        ),
    ),
)
