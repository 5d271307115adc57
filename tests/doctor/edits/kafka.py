"""Positions of Kafka sources next to what their brokers have; ``test_kafka_positions`` asks real ones."""

from __future__ import annotations

from tests.doctor.cases import Case, nothing
from tests.doctor.recorded import with_unserved

_PROBLEMS = {
    "SW-KAFKA-001": "records-expired",
    "SW-KAFKA-002": "behind-position",
    "SW-KAFKA-003": "topic-recreated",
    "SW-KAFKA-004": "partitions-gone",
    "SW-KAFKA-005": "partition-added",
}
_CODES = sorted(_PROBLEMS)

CASES = [
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
]
