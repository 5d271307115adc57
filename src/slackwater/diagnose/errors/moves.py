"""Checkpoints, inputs and outputs that were copied or moved (MOVE-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import ErrorText

GROUP = (
    ErrorText("source-path-changed", ("MOVE-04", "CHG-02"), ("Wrong basePath <path> for the root path: <root>",)),
    ErrorText(
        "escaped-path",
        ("MOVE-06",),
        ("Error: we detected a possible problem with the location of your",),
    ),
)
