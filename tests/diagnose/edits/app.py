"""Edits of what a ledger has of the batches of a query that does not keep up."""

from collections.abc import Callable, Iterable

from slackwater.core.facts import Facts, HistoryFacts
from slackwater.core.records import BatchRecord, BatchSource, RunRecord
from tests.diagnose.cases import AGGREGATION, Case, nothing
from tests.diagnose.recorded import batch, with_history


def _waiting(rows: Iterable[int]) -> Callable[[Facts], Facts]:
    """Batches of 5 rows of a topic, after each of which so many are waiting."""
    return with_history(*(_of_topic(number, waiting) for number, waiting in enumerate(rows)))


def _of_topic(number: int, waiting: int) -> BatchRecord:
    start, end = number * 5, number * 5 + 5
    start_text, end_text, latest = (f'{{"clicks":{{"0":{offset}}}}}' for offset in (start, end, end + waiting))
    return batch(number, 5)._replace(
        sources=(BatchSource("KafkaV2[Subscribe[clicks]]", start_text, end_text, latest, 5),)
    )


def _taking(took_ms: Iterable[int], trigger_ms: int | None) -> Callable[[Facts], Facts]:
    run = RunRecord(1, "s", 1, "4.3.0", 0, trigger_ms=trigger_ms)
    batches = tuple(
        batch(number, 5)._replace(run=1, durations_ms={"triggerExecution": took}) for number, took in enumerate(took_ms)
    )
    return lambda facts: facts._replace(history=HistoryFacts((run,), batches), recorded=True)


CASES = [
    Case(
        "more rows wait after each batch",
        "SW-APP-010",
        nothing,
        AGGREGATION,
        ledger=_waiting(range(100, 1100, 100)),
        says=("1000 rows wait", "100 after batch 0"),
    ),
    Case(
        "a backlog that is read", "SW-APP-010", nothing, AGGREGATION, ledger=_waiting(range(1000, 0, -100)), fires=False
    ),
    Case("a backlog that stays", "SW-APP-010", nothing, AGGREGATION, ledger=_waiting([100] * 10), fires=False),
    Case(
        "fewer rows wait than a batch reads",
        "SW-APP-010",
        nothing,
        AGGREGATION,
        ledger=_waiting([0] * 9 + [5]),
        fires=False,
    ),
    Case("files tell no lag", "SW-APP-010", nothing, AGGREGATION, ledger=_taking([100] * 10, None), fires=False),
    Case(
        "six of ten are too long",
        "SW-APP-012",
        nothing,
        AGGREGATION,
        ledger=_taking([900] * 4 + [1500] * 6, 1000),
        says=("6 of the batches 0 to 9", "1000 ms", "up to 1500 ms"),
    ),
    Case("half are too long", "SW-APP-012", nothing, AGGREGATION, ledger=_taking([900, 1500] * 5, 1000), fires=False),
    Case("no interval", "SW-APP-012", nothing, AGGREGATION, ledger=_taking([1500] * 10, None), fires=False),
]
