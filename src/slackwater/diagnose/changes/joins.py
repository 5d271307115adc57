"""Changes of stream-stream joins."""

from __future__ import annotations

from slackwater.core.verdict import Effect
from slackwater.diagnose.changes.common.text import JOIN, ChangeText

GROUP = (
    ChangeText(
        "join-type-changed",
        "A stream-stream join is of another type.",
        "the join is inner, left, right, full or semi, and was another one.",
        "an outer join keeps which rows have matched. Spark 4.3 can accept the state of another type silently: rows "
        "without a match are then missing, or written although they had one.",
        acceptable=False,
        only_with=JOIN,
    ),
    ChangeText(
        "join-keys-changed",
        "A stream-stream join compares other columns for equality.",
        "the equality conditions of the join differ.",
        "rows of the state are stored by the old keys: Spark refuses other types; with the same types kept rows are "
        "not found by the new keys.",
        only_with=JOIN,
    ),
    ChangeText(
        "join-condition-changed",
        "A stream-stream join has another condition besides equality.",
        "a condition such as a bound on times was added, removed or changed.",
        "the old condition decided which rows of the state were dropped, and which matches were written.",
        only_with=JOIN,
    ),
    ChangeText(
        "join-columns-changed",
        "A stream-stream join keeps other columns of a side.",
        "the rows that the join keeps of one side have other columns, types or order.",
        "the state has rows of the old form. Spark refuses other types, and reads the same types by position.",
        only_with=JOIN,
    ),
    ChangeText(
        "join-sides-swapped",
        "The sides of a stream-stream join are swapped.",
        "each side of the join is what the other one was.",
        "Spark keeps the rows of each side, and the position of its source, by its number: the kept rows of one "
        "side would be those of the other.",
        Effect.NOT_RESTORABLE,
        "reset",
        only_with=JOIN,
    ),
)
