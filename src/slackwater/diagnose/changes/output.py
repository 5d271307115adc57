"""Changes of what a query writes."""

from __future__ import annotations

from slackwater.core.verdict import Effect
from slackwater.diagnose.changes.common.text import AGGREGATE, ChangeText

GROUP = (
    ChangeText(
        "output-mode-changed",
        "The output mode is another one.",
        "the query writes in append, update or complete mode, and wrote in another one.",
        "the mode is in no checkpoint. With an aggregation groups that were written while they were open are "
        "written again, or groups that get no further row are never written. Without one the rows are the same.",
        Effect.NOT_RESTORABLE,
        "reset",
        only_with=AGGREGATE,
    ),
    ChangeText(
        "output-changed",
        "The rows are computed in another way after the last operator with state.",
        "a filter, a column or a function after the state differs, or the function that writes the rows, or the query "
        "has no state.",
        "Spark's guide allows it. An interrupted batch runs again with the new code.",
        Effect.COMPATIBLE,
        None,
    ),
    ChangeText(
        "output-schema-changed",
        "The output has other columns.",
        "the names or types of the output's columns differ.",
        "Spark's file sink takes any columns, so that its files differ then; a table refuses what its schema does "
        "not allow, and the sink says so before the query starts.",
        Effect.COMPATIBLE,
        None,
    ),
)
