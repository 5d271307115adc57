"""Positions of Kafka sources next to what their brokers have; ``test_kafka_positions`` asks real ones."""

from collections.abc import Callable

from slackwater.core.facts import Facts, HistoryFacts, SourceFacts
from slackwater.core.records import BatchRecord, RunRecord
from tests.diagnose.cases import AGGREGATION, Case, nothing, remove
from tests.diagnose.recorded import with_unserved

_PROBLEMS = {
    "SW-KAFKA-001": "records-expired",
    "SW-KAFKA-002": "behind-position",
    "SW-KAFKA-003": "topic-recreated",
    "SW-KAFKA-004": "partitions-gone",
    "SW-KAFKA-005": "partition-added",
    "SW-KAFKA-015": "log-cut",
}
_CODES = sorted(_PROBLEMS)


def _planned(records: int, *runs: str | None) -> Callable[[Facts], Facts]:
    """A change of the facts: the next batch is planned with so many records, after a batch of 50 and these runs."""

    def change(facts: Facts) -> Facts:
        number = facts.snapshot.generation.number
        ended = tuple(RunRecord(one + 2, "s", number, "4.3.0", 0, end=end) for one, end in enumerate(runs))
        done = BatchRecord("s", number, 0, 0, 50, run=1)
        source = SourceFacts("0", "kafka", '{"orders":{"0":50}}', f'{{"orders":{{"0":{50 + records}}}}}')
        return facts._replace(sources=(source,), history=HistoryFacts(ended, (done,)), recorded=True)

    return change


_NEXT = remove("checkpoint/commits/8")
CASES = [
    Case(
        "killed twice", "SW-KAFKA-013", _NEXT, AGGREGATION, says=("9000 records", "50", "2 runs"),
        ledger=_planned(9000, None, "killed"),
    ),
    Case("killed once", "SW-KAFKA-013", _NEXT, AGGREGATION, ledger=_planned(9000, None, "stopped"), fires=False),
    Case("of usual size", "SW-KAFKA-013", _NEXT, AGGREGATION, ledger=_planned(90, None, None), fires=False),
    Case("not planned", "SW-KAFKA-013", nothing, AGGREGATION, ledger=_planned(9000, None, None), fires=False),
    *(
        Case(
            "of two partitions",
            code,
            nothing,
            says=("orders-1", "2 partitions"),
            ledger=with_unserved(_PROBLEMS[code], 2),
        )
        for code in _CODES
    ),
    *(
        Case("another problem", code, nothing, ledger=with_unserved(_PROBLEMS[_CODES[number - 1]], 2), fires=False)
        for number, code in enumerate(_CODES)
    ),
    *(Case("all is there", code, nothing, ledger=with_unserved("", 0), fires=False) for code in _CODES),
]  # fmt: skip
