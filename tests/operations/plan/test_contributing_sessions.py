"""The first batch that contributes to open sessions, against what Spark does with each row."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pytest
from hypothesis import assume, find, given, settings
from hypothesis import strategies as st

from slackwater.core.errors import Refused
from slackwater.core.records import History, RunRecord
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.operations.plan.contributing import MERGE, StateBounds, first_contributing
from tests.operations.plan.test_contributing import BASE_MS, CODE, commit_entry, offset_entry

EXAMPLES = 1500 if "SLACKWATER_TEST_EVERY" in os.environ else 500
RUN = RunRecord(1, "web/visits", 1, "4.1.3", 0, code=CODE.digest, settings={})
V = TypeVar("V")
Sessions = frozenset[tuple[str, int, int, int]]
"""Key, start, end and count of each open session."""


@dataclass(frozen=True)
class Case:
    """Rows of each batch, as keys with times after ``BASE_MS``; ``None``: the batch has no range of its own.

    ``merged``: rows of a batch are joined before late ones are dropped, as a setting of Spark says.
    """

    batches: tuple[tuple[tuple[str, int], ...] | None, ...]
    delay_ms: int
    gap_ms: int
    target: int
    merged: bool = False

    def watermark_ms(self, batch: int) -> int:
        """As Spark moves it: the newest time before the batch, less the delay."""
        seen = [BASE_MS + time for rows in self.batches[:batch] for _, time in rows or ()]
        return max(seen) - self.delay_ms if seen else 0

    def open_sessions(self, first: int) -> Sessions:
        """The sessions that are open after the target where the state was empty before ``first``."""
        state: list[tuple[str, int, int, int]] = []
        for batch in range(first, self.target + 1):
            late, evicted = self.watermark_ms(batch - 1) if batch else 0, self.watermark_ms(batch)
            rows = [(key, BASE_MS + time, BASE_MS + time + self.gap_ms, 1) for key, time in self.batches[batch] or ()]
            rows = _joined(rows) if self.merged else rows
            state = _joined([*state, *(row for row in rows if row[2] > late)])
            state = [session for session in state if session[2] > evicted]
        return frozenset(state)

    def history(self) -> History:
        numbers = range(len(self.batches))
        times = {n: [BASE_MS + time for _, time in rows] for n, rows in enumerate(self.batches) if rows}
        ranges = [sum(rows is not None for rows in self.batches[: batch + 1]) for batch in numbers]
        return History(
            metadata='{"id":"q"}',
            offsets={
                n: offset_entry(n, self.watermark_ms(n)).replace(f'"logOffset":{n}', f'"logOffset":{ranges[n]}')
                for n in numbers
            },
            commits={n: commit_entry(self.watermark_ms(n + 1)) for n in numbers},
            written={},
            sources={},
            event_time_max_ms={n: max(found) for n, found in times.items()},
            event_time_min_ms={n: min(found) for n, found in times.items()},
            input_rows={},
            runs=dict.fromkeys(numbers, RUN._replace(settings={MERGE: "true"} if self.merged else {})),
        )

    @property
    def state(self) -> StateBounds:
        return StateBounds(True, retention_ms=None, delay_ms=self.delay_ms, session_gap_ms=self.gap_ms)

    def first(self, history: History) -> int:
        return first_contributing(BatchHistory(history), self.target, self.state, CODE)


def _joined(sessions: Sequence[tuple[str, int, int, int]]) -> list[tuple[str, int, int, int]]:
    found: list[tuple[str, int, int, int]] = []
    for key, start, end, count in sorted(sessions):
        if found and found[-1][0] == key and start <= found[-1][2]:
            last = found.pop()
            found.append((key, last[1], max(end, last[2]), last[3] + count))
        else:
            found.append((key, start, end, count))
    return found


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Times go forward with pauses, and some rows are late."""
    batches: list[tuple[tuple[str, int], ...] | None] = []
    now = 0
    for _ in range(draw(st.integers(1, 8))):
        now += draw(st.sampled_from((0, 1, 2, 5, 20, 40)))
        times = st.one_of(st.integers(now, now + 4), st.integers(max(now - 25, 0), now))
        rows = st.lists(st.tuples(st.sampled_from("ab"), times), max_size=3).map(tuple)
        batches.append(draw(st.one_of(rows, rows, rows, st.none())))
    target = draw(st.integers(0, len(batches) - 1))
    return Case(tuple(batches), draw(st.integers(0, 8)), draw(st.integers(1, 6)), target, draw(st.booleans()))


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases())
def test_a_replay_from_there_has_the_sessions_of_a_replay_from_the_beginning(case: Case) -> None:
    assert case.open_sessions(case.first(case.history())) == case.open_sessions(0)


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases(), st.data())
def test_with_records_missing_too(case: Case, data: st.DataObject) -> None:
    some = st.frozensets(st.integers(0, len(case.batches)), max_size=4)
    history, without = (
        case.history(),
        {name: data.draw(some, name) for name in ("offsets", "commits", "times", "oldest")},
    )
    assume(case.target not in without["offsets"])
    history = replace(
        history,
        offsets=_thinned(history.offsets, without["offsets"]),
        commits=_thinned(history.commits, without["commits"]),
        event_time_max_ms=_thinned(history.event_time_max_ms, without["times"]),
        event_time_min_ms=_thinned(history.event_time_min_ms, without["times"] | without["oldest"]),
        runs={**history.runs, **dict.fromkeys(data.draw(some, "runs"), RUN._replace(code="other", settings=None))},
    )
    try:
        first = case.first(history)
    except Refused:
        return
    assert case.open_sessions(first) == case.open_sessions(0)


def test_a_search_that_is_one_batch_late_is_noticed() -> None:
    noticed = find(
        cases(),
        lambda case: (
            (first := case.first(case.history())) < case.target
            and case.open_sessions(first + 1) != case.open_sessions(0)
        ),
    )
    assert noticed.target > 0


VISITS = Case(
    # Two days with a pause between them, the second one with a row that is too late, and one without rows.
    (
        (("a", 0), ("b", 4)), (("a", 8), ("b", 12)), (("a", 16), ("a", 18)),
        (("a", 100), ("b", 103)), (("b", 108),), (("a", 109), ("a", 4)), None, (("a", 112),),
    ),
    delay_ms=5, gap_ms=6, target=7,
)  # fmt: skip


def _thinned(records: Mapping[int, V], without: frozenset[int]) -> dict[int, V]:
    return {batch: record for batch, record in records.items() if batch not in without}


def test_only_what_is_after_the_last_pause_is_read() -> None:
    assert VISITS.first(VISITS.history()) == 3


@pytest.mark.parametrize("batch", range(3, 6))
def test_without_the_oldest_time_of_a_batch_its_watermark_bounds_it(batch: int) -> None:
    history = VISITS.history()
    history = replace(history, event_time_min_ms=_thinned(history.event_time_min_ms, frozenset({batch})))

    # The first two of them ran under a watermark of the day before.
    assert VISITS.first(history) == (0 if batch < 5 else 3)


def test_a_ledger_that_has_no_event_times_proves_nothing() -> None:
    history = replace(VISITS.history(), event_time_max_ms={}, event_time_min_ms={})

    assert VISITS.first(history) == 0


def test_where_late_rows_are_joined_first_the_watermark_bounds_nothing() -> None:
    merged = replace(VISITS, merged=True)

    assert merged.first(merged.history()) == 0


def test_settings_that_are_not_recorded_bound_nothing() -> None:
    history = VISITS.history()

    assert VISITS.first(replace(history, runs=dict.fromkeys(history.runs, RUN._replace(settings=None)))) == 0
