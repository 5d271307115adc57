"""Compares the rows of a replayed batch with what is recorded of the batch.

Spark counts the rows that the tasks of a batch have read. Where an executor is lost, tasks of a stage whose output was
lost with it run again, and are counted again (``DAGScheduler.handleTaskCompletion``): a count can be too high, and is
never too low. Of a batch without a count its offsets are known; there are never more rows than offsets, but fewer in a
transactional or compacted Kafka topic.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.core.errors import Refused
from slackwater.ledger.recording.reach import StoreReach
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.contributing import Code
from slackwater.operations.plan.words import plan_again


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """What is known of the rows of a batch: the recorded count, and how many its range has at most."""

    recorded: int | None = None
    most: int | None = None

    def is_exceeded_by(self, rows: int) -> bool:
        """Whether a count is too high: of more rows than the batch can have read."""
        return any(known is not None and rows > known for known in (self.recorded, self.most))


def expected_rows(operation: Operation, batch: int, code: Code) -> ExpectedRows:
    """What is known of a batch; nothing where its run counted other rows than ``code`` does."""
    if not code.counts_as(operation.history.runs.get(batch)):
        return ExpectedRows()
    return ExpectedRows(operation.history.input_rows.get(batch), operation.batches.most_rows(batch))


def check_rows(operation: Operation, batch: int, rows: int, expected: ExpectedRows) -> str | None:
    """Why the recorded count does not hold, ``None`` where it does. Raises Refused (``rows-differ``) for other rows."""
    recorded, most = expected.recorded, expected.most
    if expected.is_exceeded_by(rows):
        raise _more(operation, batch, rows, expected)
    if recorded is None or rows == recorded:
        return None
    if most is not None and recorded > most:
        why = f"its range has no more than {most}"
    elif rows > 0 and operation.batches.is_intact(batch, StoreReach()):
        why = "its files are still those that it read"
    else:
        raise _fewer(operation, batch, rows, recorded)
    return (
        f"batch {batch} has {rows} rows, and not the {recorded} that are recorded: {why}, and Spark counts rows again "
        "when an executor is lost"
    )


def _more(operation: Operation, batch: int, rows: int, expected: ExpectedRows) -> Refused:
    """More rows, also when the batch was replayed a second time."""
    most = min(known for known in (expected.recorded, expected.most) if known is not None)
    known = f"{most} rows are recorded" if expected.recorded == most else f"its range has no more than {most}"
    return Refused(
        "rows-differ",
        f"The replay of batch {batch} read {rows} rows; {known}",
        where=f"stream {operation.plan.stream}",
        expected=f"{most} rows",
        found=f"{rows} rows, also in a second replay of the batch",
        hint="nothing in use was changed; restore the source's data, which has more than the batch read, or, where an "
        f"executor was lost in both replays, plan again: {plan_again(operation.plan)}",
    )


def _fewer(operation: Operation, batch: int, rows: int, recorded: int) -> Refused:
    return Refused(
        "rows-differ",
        f"The replay of batch {batch} read {rows} rows; {recorded} rows are recorded",
        where=f"stream {operation.plan.stream}",
        expected=f"{recorded} rows",
        found=f"{rows} rows",
        hint="restore the source's data; nothing in use was changed. If the source has all of it, an executor was lost "
        "while the batch ran, and Spark counted rows again: what the source shows does not prove that, so that only a "
        "reset that processes everything again is exact",
    )
