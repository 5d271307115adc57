"""The first batch of a replay by what batches have read: partitions that came later, and ones that stand still."""

import pytest

from slackwater.core.records import History
from slackwater.core.targets import Target
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.operations.goals.replay import FirstBatch

ENDS = ('{"t":{"0":10}}', '{"t":{"0":20,"1":5}}', '{"t":{"0":30,"1":5}}', '{"t":{"0":40,"1":5}}')
"""Partition 1 is new in batch 1, and has had no record since."""


def _history() -> BatchHistory:
    head = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}\n'
    return BatchHistory(
        History(
            metadata=None,
            offsets={batch: head + end for batch, end in enumerate(ENDS)},
            commits={},
            written={},
            sources={"0": {0: '\0v1\n{"t":{"0":0}}'}},
            event_time_max_ms={},
            input_rows={},
        )
    )


@pytest.mark.parametrize(
    ("target", "offsets", "batch"),
    [
        (Target("shift", -1), {}, 1),
        (Target("shift", -25), {}, 1),
        (Target("shift", -31), {}, 0),
        (Target("offsets", file="f"), {"0": '{"t":{"0":25}}'}, 2),
        (Target("offsets", file="f"), {"0": '{"t":{"0":40,"1":4}}'}, 1),
    ],
)
def test_a_partition_counts_from_its_first_batch_on(target: Target, offsets: dict[str, str], batch: int) -> None:
    assert FirstBatch("web/rows", _history(), 3, target, 0, offsets).find() == batch
