"""Changes of windows, watermarks and times."""

from __future__ import annotations

from slackwater.core.verdict import Effect
from slackwater.diagnose.changes.common.text import AGGREGATE, FUNCTION, ChangeText

GROUP = (
    ChangeText(
        "window-changed",
        "A window has another length, slide, offset or time column.",
        "a window of an aggregation is another one. Where the program of the old query is not recorded, only the "
        "lengths are compared, if they are.",
        "the type of the key is the same, so that Spark reads the state: old and new windows exist side by side, "
        "and those between are absent or doubled in the output. In complete mode the whole result is written again.",
        Effect.NOT_RESTORABLE,
        "reset",
        only_with=AGGREGATE,
    ),
    ChangeText(
        "window-kind-changed",
        "A window became a session, or a session a window.",
        "the query groups by sessions where it grouped by windows of a fixed length, or the other way round.",
        "the state of sessions has another layout, which Spark cannot read. Windows that were written stay in the "
        "output.",
        Effect.NOT_RESTORABLE,
        "reset",
        acceptable=False,
        only_with=AGGREGATE,
    ),
    ChangeText(
        "session-gap-changed",
        "The gap of a session window is another one.",
        "the gap of the sessions differs.",
        "sessions of the state were closed or merged by the old gap, and those that were written cannot be merged "
        "again.",
        Effect.NOT_RESTORABLE,
        "reset",
        only_with=AGGREGATE,
    ),
    ChangeText(
        "watermark-added",
        "A watermark was added.",
        "rows that reach an operator with state pass a withWatermark that they did not pass before.",
        "rows that the watermark would have dropped as late are in the state. The watermark starts at the epoch.",
        Effect.CHANGES_ROWS,
    ),
    ChangeText(
        "watermark-removed",
        "A watermark was removed.",
        "rows that reach an operator with state no longer pass a withWatermark.",
        "state is never removed again, and late rows start groups again that were dropped and written before.",
    ),
    ChangeText(
        "watermark-column-changed",
        "The watermark is of another column.",
        "withWatermark names another column, or an expression of another one.",
        "the recorded watermark is a time of the old column, and the new one continues from it: rows count as late, "
        "or state is dropped, by times that have nothing to do with each other.",
        Effect.NOT_RESTORABLE,
        "reset",
    ),
    ChangeText(
        "watermark-delay-changed",
        "The delay of a watermark is another one.",
        "withWatermark has another delay.",
        "a watermark never goes back. With a longer delay it stays where it is until the delay has passed, "
        "and windows that the old delay has closed stay closed, which `run` says, too; with a shorter one windows "
        "close at once, and rows that it would have dropped as late are in the state.",
        Effect.CHANGES_ROWS,
        None,
    ),
    ChangeText(
        "time-zone-changed",
        "The session's time zone is another one.",
        "`spark.sql.session.timeZone` differs, and a source parses times without a zone or a function may use it.",
        "such times in rows of the kept state were read in the old zone. A rebuild keeps the zone of each run.",
        Effect.CHANGES_ROWS,
        None,
    ),
    ChangeText(
        "timeout-changed",
        "The timeout or the time mode of a function with state is another one.",
        "the function with state has another timeout or time mode.",
        "timeouts of the state were set by the old mode. Between no timeout and one the layout of the state "
        "differs, and Spark refuses it.",
        only_with=FUNCTION,
    ),
)
