"""Edits of watermarks in the logs."""

from collections.abc import Callable
from typing import Any

from slackwater.core.facts import Facts
from slackwater.core.program import InputShape, OperatorShape, Program, Watermark
from tests.diagnose.cases import AGGREGATION, Case, nothing, write
from tests.diagnose.recorded import batch, with_history
from tests.diagnose.rewriting import replace, watermark

_MINUTE_MS = 60_000
_BATCH_3_MS, _BATCH_8_MS = 1795221530978, 1795221532170
_FUTURE_MS = _BATCH_8_MS + 90 * _MINUTE_MS

_UNION = "multi_source_union_multi_watermark"
_IDLE = with_history(*(batch(number, 5, 0, watermark_ms=1000) for number in range(10)))
_MOVED = with_history(*(batch(number, 5, 0, watermark_ms=number) for number in range(10)))
_BOTH = with_history(*(batch(number, 5, 1, watermark_ms=1000) for number in range(10)))

_LATE = with_history(*(batch(number, 5)._replace(late_rows=number // 8 * 3) for number in range(10)))


def _with_delays(before_ms: int, now_ms: int) -> Callable[[Facts], Facts]:
    """Late rows up to batch 9, and another delay of the watermark from batch 10 on."""
    programs = [{"after": after, "program": _program(delay_ms)} for after, delay_ms in ((-1, before_ms), (9, now_ms))]

    def change(facts: Facts) -> Facts:
        found = _LATE(facts)
        generation = found.snapshot.generation._replace(programs=programs)
        return found._replace(snapshot=found.snapshot._replace(generation=generation))

    return change


def _program(delay_ms: int) -> dict[str, Any]:
    rows = InputShape("source 0", watermarks=(Watermark("at", delay_ms),))
    return Program(operators=(OperatorShape("aggregate", (rows,)),)).as_json()


def _state(*rows: int) -> Callable[[Facts], Facts]:
    return with_history(*(batch(number, 5)._replace(state_rows=count) for number, count in enumerate(rows)))


CASES = [
    Case("late in two batches", "SW-WM-010", nothing, AGGREGATION, says=("6 rows or more", "8 to 9"), ledger=_LATE),
    Case("late, then a shorter delay", "SW-WM-010", nothing, AGGREGATION, ledger=_with_delays(9000, 1000)),
    Case("late, then a longer delay", "SW-WM-010", nothing, AGGREGATION, ledger=_with_delays(1000, 9000), fires=False),
    Case("state only grows", "SW-WM-009", nothing, AGGREGATION, says=("from 1 to 60",), ledger=_state(*range(1, 61))),
    Case("state is removed", "SW-WM-009", nothing, AGGREGATION, ledger=_state(*range(60), *range(5, 60)), fires=False),
    Case("state stays", "SW-WM-009", nothing, AGGREGATION, ledger=_state(*range(20), *[20] * 40), fires=False),
    Case("a young stream", "SW-WM-009", nothing, AGGREGATION, ledger=_state(*range(1, 40)), fires=False),
    Case("no late rows", "SW-WM-010", nothing, AGGREGATION, ledger=_MOVED, fires=False),
    Case("one source without rows", "SW-WM-003", nothing, _UNION, says=("source 1", "batch 0 to 9"), ledger=_IDLE),
    Case("the watermark moves", "SW-WM-003", nothing, _UNION, ledger=_MOVED, fires=False),
    Case("both have rows", "SW-WM-003", nothing, _UNION, ledger=_BOTH, fires=False),
    Case("only a version", "SW-WM-005", write("checkpoint/commits/8", "v1"), AGGREGATION, says=("batch 8", "none")),
    Case("a batch older", "SW-WM-005", watermark(8, 1704067322000), AGGREGATION, says=("2024-01-01", "commits/8")),
    Case("as it was planned", "SW-WM-005", watermark(8, 1704067342000), AGGREGATION, fires=False),
    Case("no watermark at all", "SW-WM-005", nothing, fires=False),
    Case("ninety minutes ahead", "SW-WM-006", watermark(8, _FUTURE_MS), AGGREGATION, says=("1.5 h past", "commits/8")),
    Case("clocks that differ", "SW-WM-006", watermark(8, _BATCH_8_MS + 9 * _MINUTE_MS), AGGREGATION, fires=False),
    Case("an older commit", "SW-WM-008", watermark(3, 1704067322001), AGGREGATION, says=("batch 4", "batch 3")),
    Case(
        "a digit of a plan", "SW-WM-008",
        replace("checkpoint/offsets/5", '"batchWatermarkMs":17040672', '"batchWatermarkMs":17040674'), AGGREGATION,
        says=("offsets/5", "2024-01-01"),
    ),
    Case("the newest commit", "SW-WM-008", watermark(8, 1704067342001), AGGREGATION, fires=False),
    Case("several restarts", "SW-WM-008", nothing, AGGREGATION, fires=False),
    Case("no watermark", "SW-WM-008", nothing, fires=False),
    Case("batches between are not kept", "SW-WM-008", nothing, "async_progress_gaps", fires=False),
    Case(
        "a plan of Slackwater's", "SW-WM-008", watermark(3, 1704067322001), AGGREGATION, ledger=with_history(),
        fires=False,
    ),
    Case("reached since", "SW-WM-006", watermark(3, _BATCH_3_MS + 11 * _MINUTE_MS), AGGREGATION, fires=False),
]  # fmt: skip
