"""How far back rows matter, from Spark's plan, and whether the query asks for batches without data."""

import json
from pathlib import Path

import pytest

from slackwater.core.program import QueryProfile
from tests.support.warm_jvm import output_of

PROGRAM = Path(__file__).with_name("programs") / "bounds.py"
MINUTE = 60_000
HOUR = 60 * MINUTE
JOINED = 20 * MINUTE + 2
"""Spark keeps a row for a millisecond more than the condition says, on both sides."""
EXPECTED = {
    "tumbling": (HOUR, None, [HOUR, 0]),
    "sliding": (HOUR, None, [15 * MINUTE, 0]),
    "with a start": (HOUR, None, [HOUR, 5 * MINUTE]),
    "next to a remainder": (HOUR, None, None),
    **dict.fromkeys(("renamed", "joined with a table", "watermark above a union"), (HOUR, None, [HOUR, 0])),
    **dict.fromkeys(("chained", "chained by window_time"), (HOUR, None, None)),
    "session": (None, 4 * MINUTE, None),
    "session of a renamed column": (None, 90_000, None),
    **dict.fromkeys(("inner", "left_outer", "right_outer", "full_outer", "left_semi"), (JOINED, None, None)),
    "both ways": (25 * MINUTE + 2, None, None),
}
SILENT = ["no bound", "truncated event time as a key", "event time as a null-safe key"]


@pytest.mark.spark
def test_only_what_event_times_cover_has_a_bound(tmp_path: Path) -> None:
    printed = json.loads(output_of(PROGRAM, tmp_path))

    # Spark runs a batch without data for each of the others when the watermark advances.
    assert (printed["silent"], printed["complete"]) == (SILENT, False)
    bounded = {name: tuple(one) for name, one in printed["found"].items() if one[:2] != [None, None]}
    assert bounded == EXPECTED


def test_a_profile_has_its_bounds_after_it_was_recorded() -> None:
    profile = QueryProfile(("Aggregate",), (0,), (HOUR,), HOUR, ("json",), window_starts_ms=(HOUR, 0))
    assert QueryProfile.from_json(json.loads(json.dumps(profile.as_json()))) == profile
