"""The lag of a batch: rows that its sources hold beyond its end, where their offsets determine them."""

from __future__ import annotations

import pytest

from slackwater.core.records import BatchRecord, BatchSource
from slackwater.diagnose.checks.common.check import lag_of


def _lag(*reported: tuple[str | None, str | None]) -> int | None:
    sources = tuple(BatchSource("a source", None, end, latest, 1) for end, latest in reported)
    return lag_of(BatchRecord("clicks/per_page", 1, 4, timestamp_ms=0, input_rows=1, sources=sources))


def test_lag_of_topics_is_the_sum_over_partitions() -> None:
    topic = ('{"t":{"0":5,"1":3}}', '{"t":{"0":9,"1":3,"2":1}}')

    assert _lag(topic) == 5
    assert _lag(topic, topic) == 10
    assert _lag(topic, ('{"logOffset":4}', None)) == 5
    assert _lag(("{}", "{}"), topic) == 5


@pytest.mark.parametrize(
    ("end", "latest"),
    [
        ("{}", "{}"),
        ('{"t":{"0":5}}', None),
        ('{"t":{"0":5}}', '{"logOffset":4}'),
        ('{"streamName":{"shardId-000000000000":5}}', '{"streamName":{"shardId-000000000000":8}}'),
        (None, '{"t":{"0":5}}'),
        ("5", "9"),
    ],
    ids=["no partitions", "not reported", "another kind", "Kinesis-like", "no offset yet", "number"],
)
def test_lag_is_unknown_where_offsets_do_not_determine_rows(end: str | None, latest: str | None) -> None:
    assert _lag((end, latest)) is None
