"""Failures by a change of the code: of a query with state, which Spark keeps without the code that made it."""

import re
from collections.abc import Callable

import pytest

from tests.diagnose.live.frame import (
    TOTALS,
    Failure,
    Scene,
    Silent,
    Stops,
    Stream,
    changed,
    in_gate,
    prove,
    uninterrupted,
)
from tests.support.outputs import Rows

pytestmark = pytest.mark.spark

WINDOW = re.compile(r"'start': Timestamp\('([^']*)'\)")
REBUILT = ("plan rebuild", "apply", "run")
STARTED_AGAIN = ("plan reset", "apply", "run")
DOCTOR = "slackwater doctor --pipeline clicks.py"


def released(old: str, new: str) -> Callable[[Scene], None]:
    return lambda scene: scene.change_code(old, new)


def only(old: str, new: str) -> Callable[[Stream], Rows]:
    """The rows of the new code alone, from the first file on."""
    return lambda stream: uninterrupted(stream.folder / f"whole {len(new)}", changed(TOTALS, old, new))


def after_the_old(old: str, new: str) -> Callable[[Stream], Rows]:
    """The rows that the old code has written, and those of the new code of all later windows."""

    def expected(stream: Stream) -> Rows:
        written = stream.written
        closed = {_window(row) for row in written}
        return written + Rows({row: n for row, n in only(old, new)(stream).items() if _window(row) not in closed})

    return expected


def _window(row: str) -> str:
    found = WINDOW.search(row)
    assert found is not None
    return found.group(1)


SUM = 'F.sum("n").alias("n")'
MEAN = (SUM, f'{SUM}, F.avg("n").alias("mean")')
MOST = (SUM, 'F.max("n").alias("n")')
KEY = ('"page").agg', 'F.upper("page").alias("page")).agg')
SHORTER = ('"30 minutes"', '"15 minutes"')
FIRST_SEEN = (f'groupBy(F.window("ts", "30 minutes"), "page").agg({SUM})', 'dropDuplicates(["page", "ts"])')
FAILURES = [
    Failure(
        "CHG-05", "an aggregate was added", released(*MEAN),
        spark=Stops("[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE]"),
        found="aggregates-changed", risk="stuck", goal="rebuild", typed=REBUILT,
        doctor=DOCTOR, expected=after_the_old(*MEAN),
    ),
    Failure(
        "CHG-06", "a sum became a maximum", released(*MOST),
        spark=Silent(lacks=1, wrong=1),
        found="aggregates-changed", risk="wrong", goal="rebuild", typed=REBUILT,
        doctor=DOCTOR, expected=after_the_old(*MOST),
    ),
    Failure(
        "CHG-06", "the key became another", released(*KEY),
        spark=Silent(lacks=1, wrong=2),
        found="keys-changed", risk="wrong", goal="rebuild", typed=REBUILT,
        doctor=DOCTOR, expected=after_the_old(*KEY),
    ),
    Failure(
        "CHG-06", "windows became shorter", released(*SHORTER),
        spark=Silent(lacks=5, wrong=3),
        found="window-changed", risk="wrong", goal="reset", typed=STARTED_AGAIN,
        doctor=DOCTOR, expected=only(*SHORTER),
    ),
    Failure(
        "CHG-07", "an aggregation became a deduplication", released(*FIRST_SEEN),
        spark=Stops("[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA]"),
        found="operators-changed", risk="stuck", goal="reset", typed=STARTED_AGAIN,
        doctor=DOCTOR, expected=only(*FIRST_SEEN),
    ),
]  # fmt: skip


@pytest.mark.parametrize("failure", in_gate(FAILURES, "CHG-07"))
def test_changed_code(totals: Stream, failure: Failure) -> None:
    prove(totals, failure)
