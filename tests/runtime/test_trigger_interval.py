"""The time between two batches that a trigger asks for, as a run records it."""

from __future__ import annotations

import pytest

from slackwater.core.program import Trigger
from slackwater.triggers import available_now, continuous, once, processing_time, waits_ms


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (processing_time("10 seconds"), 10_000),
        (processing_time("interval 1 HOUR 30 minutes"), 5_400_000),
        (processing_time("0 seconds"), None),
        (available_now(), None),
        (once(), None),
        (continuous("1 second"), None),
        (Trigger("processing-time"), None),
    ],
)
def test_only_a_trigger_that_waits_has_an_interval(trigger: Trigger, expected: int | None) -> None:
    assert waits_ms(trigger) == expected
