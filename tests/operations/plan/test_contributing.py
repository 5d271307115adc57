"""The first contributing batch, against a full scan of all event times."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from slackwater.core.errors import Refused
from slackwater.core.records import History, RunRecord
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.operations.plan.contributing import Code, StateBounds, first_contributing, newest_event_time
from tests.support.errors import raises_code

BASE_MS = 1_767_225_600_000
"""Event times are far from 0, which is what Spark calls a watermark that is not there yet."""
CODE = Code("c0de", "rows", "4.1.0")
RUN = RunRecord(1, "weather/hourly", 1, "4.1.3", 0, code=CODE.digest)


@dataclass(frozen=True)
class Case:
    """Event times of each batch's rows, and the query that reads them. Nothing has looked at rows of ``skipped``."""

    event_times: tuple[tuple[int, ...], ...]
    delay_ms: int
    retention_ms: int
    target: int
    skipped: frozenset[int] = frozenset()

    def watermark_ms(self, batch: int) -> int:
        """As Spark moves it: the newest time before the batch, less the delay; never back, never below 0."""
        looked_at = [times for number, times in enumerate(self.event_times[:batch]) if number not in self.skipped]
        seen = [time for times in looked_at for time in times]
        return max(max(seen) - self.delay_ms, 0) if seen else 0

    def full_scan(self) -> int:
        """The first batch with a row that still matters for the state at the target, which is always replayed."""
        threshold = self.watermark_ms(self.target) - self.retention_ms
        matters = [
            batch
            for batch, times in enumerate(self.event_times[: self.target + 1])
            if self.watermark_ms(self.target) == 0 or any(time >= threshold for time in times)
        ]
        return min([*matters, self.target])

    def history(self) -> History:
        batches = range(len(self.event_times))
        return History(
            metadata='{"id":"q"}',
            offsets={batch: offset_entry(batch, self.watermark_ms(batch)) for batch in batches},
            commits={batch: commit_entry(self.watermark_ms(batch + 1)) for batch in batches},
            written={},
            sources={},
            event_time_max_ms={
                batch: max(times) for batch, times in enumerate(self.event_times) if times and batch not in self.skipped
            },
            input_rows={},
            skipped=self.skipped,
            runs=dict.fromkeys(batches, RUN),
        )

    @property
    def state(self) -> StateBounds:
        return StateBounds(stateful=True, retention_ms=self.retention_ms, delay_ms=self.delay_ms)


def offset_entry(batch: int, watermark_ms: int) -> str:
    metadata = {"batchWatermarkMs": watermark_ms, "batchTimestampMs": 1, "conf": {}}
    return f'v1\n{json.dumps(metadata)}\n{{"logOffset":{batch}}}'


def commit_entry(next_watermark_ms: int) -> str:
    return f'v1\n{{"nextBatchWatermarkMs":{next_watermark_ms}}}'


@st.composite
def cases(draw: st.DrawFn) -> Case:
    times = st.integers(BASE_MS, BASE_MS + 30)
    batches = draw(st.lists(st.lists(times, max_size=3).map(tuple), min_size=1, max_size=7))
    target = draw(st.integers(0, len(batches) - 1))
    return Case(tuple(batches), draw(st.integers(0, 12)), draw(st.integers(0, 12)), target)


def thinned(history: History, *, offsets: Sequence[int], commits: Sequence[int], times: Sequence[int]) -> History:
    """The same without some of its records."""
    return replace(
        history,
        offsets={batch: text for batch, text in history.offsets.items() if batch not in offsets},
        commits={batch: text for batch, text in history.commits.items() if batch not in commits},
        event_time_max_ms={b: time for b, time in history.event_time_max_ms.items() if b not in times},
    )


@settings(max_examples=500, deadline=None)
@given(cases())
def test_with_everything_recorded_it_is_what_a_full_scan_finds(case: Case) -> None:
    first = first_contributing(BatchHistory(case.history()), case.target, case.state, CODE)

    # Of batches without a row nothing is known before the first watermark: then they are replayed too.
    assert first <= case.full_scan()
    if all(case.event_times):
        assert first == case.full_scan()


@settings(max_examples=500, deadline=None)
@given(cases(), st.integers(1, 12), st.integers(0, 11))
def test_of_windows_only_those_that_are_open_count(case: Case, slide: int, start: int) -> None:
    case = replace(case, retention_ms=max(case.retention_ms, slide))
    watermark = case.watermark_ms(case.target)
    contributing = [
        batch
        for batch, times in enumerate(case.event_times[: case.target + 1])
        if watermark == 0
        or any((time - start) // slide * slide + start + case.retention_ms > watermark for time in times)
    ]
    state = case.state._replace(window_starts_ms=(slide, start))

    first = first_contributing(BatchHistory(case.history()), case.target, state, CODE)

    assert first <= min([*contributing, case.target])
    if all(case.event_times):
        assert first == min([*contributing, case.target])


@settings(max_examples=500, deadline=None)
@given(cases(), st.data())
def test_with_records_missing_it_is_never_later_or_refused(case: Case, data: st.DataObject) -> None:
    some = st.lists(st.integers(0, len(case.event_times)), max_size=4)
    history = thinned(case.history(), offsets=data.draw(some), commits=data.draw(some), times=data.draw(some))
    if case.target not in history.offsets:
        return

    first = _first_or_none(history, case)

    if first is not None:
        assert first <= case.full_scan()
        assert all(batch in history.offsets for batch in range(max(first - 1, 0), case.target + 1))


@settings(max_examples=500, deadline=None)
@given(cases(), st.frozensets(st.integers(0, 6), max_size=3), st.data())
def test_rows_that_advanced_no_watermark_are_replayed(case: Case, skipped: frozenset[int], data: st.DataObject) -> None:
    case = replace(case, skipped=skipped)
    missing = data.draw(st.lists(st.integers(0, case.target), max_size=2).filter(lambda some: case.target not in some))

    first = _first_or_none(thinned(case.history(), offsets=missing, commits=missing, times=missing), case)

    if first is not None:
        assert first <= case.full_scan()


def _first_or_none(history: History, case: Case) -> int | None:
    try:
        return first_contributing(BatchHistory(history), case.target, case.state, CODE)
    except Refused:
        return None


@settings(max_examples=200, deadline=None)
@given(cases(), st.booleans())
def test_what_is_not_known_of_the_query_counts_all(case: Case, retention_known: bool) -> None:
    state = StateBounds(True, case.retention_ms if retention_known else None, None)
    # The time is known from the watermark alone, and without a delay it cannot be read back.
    history = thinned(case.history(), offsets=(), commits=(), times=range(len(case.event_times)))

    assert first_contributing(BatchHistory(history), case.target, state, CODE) == 0


def test_a_search_that_is_one_batch_late_is_noticed() -> None:
    def late(case: Case) -> int:
        return first_contributing(BatchHistory(case.history()), case.target, case.state, CODE) + 1

    noticed = find(cases(), lambda case: case.full_scan() < case.target and late(case) > case.full_scan())
    assert late(noticed) > noticed.full_scan()


def test_of_several_watermarks_only_what_is_recorded_of_each_input_counts() -> None:
    minute = 60_000
    batches = range(6)
    watermarks = [BASE_MS + 10 * batch * minute for batch in batches]
    history = History(
        metadata='{"id":"q"}',
        offsets={batch: offset_entry(batch, watermarks[batch]) for batch in batches},
        commits={batch: commit_entry(watermarks[batch] + 10 * minute) for batch in batches},
        written={},
        sources={},
        # Of the input that is behind, as it is the first one with a watermark.
        event_time_max_ms=dict.fromkeys(batches, BASE_MS),
        input_rows={},
        runs=dict.fromkeys(batches, RUN),
        newest_of_inputs_ms={batch: watermarks[batch] + 15 * minute for batch in batches},
    )
    state = StateBounds(stateful=True, retention_ms=10 * minute, delay_ms=None, several=True)

    def first(**changed: Any) -> int:
        return first_contributing(BatchHistory(replace(history, **changed)), 5, state, CODE)

    # The watermark of batch 5 less the retention is 40 minutes; batch 3 has seen 45, batch 2 only 35.
    assert first() == 3
    assert first(skipped=frozenset({1})) == 1
    assert first(newest_of_inputs_ms={b: ms for b, ms in history.newest_of_inputs_ms.items() if b != 2}) == 2
    assert first(newest_of_inputs_ms={}) == 0


@given(cases())
def test_a_query_without_state_needs_nothing(case: Case) -> None:
    assert (
        first_contributing(BatchHistory(case.history()), case.target, StateBounds(False, 0, None), CODE)
        == case.target + 1
    )


def test_the_watermark_that_counts_is_the_one_of_the_target() -> None:
    # Windows of 10: the row at 5 is emitted by the batch after the target, so it is in the state at the target.
    times = tuple((BASE_MS + time,) for time in (5, 12, 30, 31))
    case = Case(times, delay_ms=2, retention_ms=10, target=2)

    assert case.watermark_ms(2) == BASE_MS + 10
    assert first_contributing(BatchHistory(case.history()), 2, case.state, CODE) == 0


def test_older_batches_that_are_not_recorded_are_proven_too_old_by_the_next_one() -> None:
    case = Case(tuple((BASE_MS + 100 * batch,) for batch in range(6)), delay_ms=10, retention_ms=50, target=5)
    purged = thinned(case.history(), offsets=(0, 1), commits=(0, 1), times=(0, 1))

    assert first_contributing(BatchHistory(purged), 5, case.state, CODE) == case.full_scan() == 4


def test_a_gap_that_may_matter_is_refused_and_named() -> None:
    case = Case(tuple((BASE_MS + batch,) for batch in range(6)), delay_ms=10, retention_ms=50, target=5)
    purged = thinned(case.history(), offsets=(0, 1, 2), commits=(), times=())

    with raises_code(Refused, "history-short", found="no record of batch 2"):
        first_contributing(BatchHistory(purged), 5, case.state, CODE)


def test_the_newest_event_time_is_the_newest_that_is_recorded_anywhere() -> None:
    case = Case(((BASE_MS + 7,), (BASE_MS + 3,)), delay_ms=2, retention_ms=0, target=1)
    history = case.history()
    nothing = thinned(history, offsets=(), commits=(1,), times=(1,))

    assert newest_event_time(BatchHistory(history), 1, 2) == BASE_MS + 7
    assert newest_event_time(BatchHistory(history), 1, None) == BASE_MS + 3
    assert newest_event_time(BatchHistory(nothing), 1, 2) is None


@settings(max_examples=300, deadline=None)
@given(cases(), st.frozensets(st.integers(0, 6), max_size=4))
def test_evidence_of_other_code_does_not_count(case: Case, by_other_code: frozenset[int]) -> None:
    """Other code may have filtered rows before its watermark: what it recorded of a batch proves nothing."""
    other = RUN._replace(code="other")
    runs = {batch: other if batch in by_other_code else RUN for batch in range(len(case.event_times))}
    history = replace(case.history(), runs=runs)
    before = [batch for batch in by_other_code if batch <= case.target]

    first = first_contributing(BatchHistory(history), case.target, case.state, CODE)

    assert first <= min([case.full_scan(), *before])


@pytest.mark.parametrize(
    ("run", "counts"),
    [
        (RUN, True),
        (RUN._replace(code="other"), False),
        (RUN._replace(rows_digest="rows"), True),
        # The query read a setting from a file that is no code.
        (RUN._replace(rows_digest="other rows"), False),
        (RUN._replace(code="other", rows_digest="rows"), True),
        (RUN._replace(code="other", rows_digest="other rows"), False),
        # Of one query, two releases of Spark do not optimise the same plan.
        (RUN._replace(rows_digest="other plan", spark_version="3.5.9"), True),
        (RUN._replace(rows_digest="rows", spark_version="3.5.9", code="other"), False),
        (RUN._replace(rows_digest="other plan", spark_version="3.5.9", program="same"), True),
        (RUN._replace(rows_digest="other plan", spark_version="3.5.9", program="other"), False),
        # The ledger has dropped it: it may have read other rows.
        (RUN._replace(rows_digest="other plan", spark_version="3.5.9", program="dropped"), False),
        (RUN._replace(program="dropped"), True),
        (RUN._replace(program="other"), False),
        (RUN._replace(code=None), False),
        (RUN._replace(code=None, rows_digest="rows"), False),
        (None, False),
    ],
)
def test_which_runs_read_the_rows_that_the_present_code_reads(run: RunRecord | None, counts: bool) -> None:
    assert CODE._replace(programs={"other": False, "same": True}).reads_as(run) is counts


def test_before_programs_were_compared_equal_files_are_the_evidence() -> None:
    assert CODE.reads_as(RUN._replace(rows_digest="other plan", spark_version="3.5.9", program="dropped"))


def test_an_unknown_digest_of_rows_equals_no_other() -> None:
    assert not Code("new").reads_as(RUN._replace(rows_digest=None))


@pytest.mark.parametrize(
    ("code", "run", "comparable"),
    [
        (Code("c0de", "rows", "4.1.0"), RUN, True),
        (Code("new", "rows", "4.1.0"), RUN._replace(rows_digest="rows"), True),
        (Code("new", "other rows", "4.1.0"), RUN, False),
        (Code("c0de", "other rows", "4.1.0"), RUN._replace(rows_digest="rows"), False),
        (Code("c0de", "rows", "4.0.5"), RUN, False),
        (Code("c0de", "rows", "4.0.5"), RUN._replace(rows_digest="rows"), False),
        (Code("c0de", "rows", "4.1.0"), None, False),
    ],
)
def test_counts_of_rows_are_compared_with_those_of_the_same_rows(
    code: Code, run: RunRecord | None, comparable: bool
) -> None:
    assert code.counts_as(run) is comparable
