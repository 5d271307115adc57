"""The output has transactions of another application that are ahead of the checkpoint.

What it finds: the only transactions in the log of the Delta table belong to an application id that is not the query's
own, and their number is not below the next batch of the checkpoint.
Why it matters: a batch function that passes this id as `txnAppId` to Delta writes nothing until its batches have passed
that number. A new checkpoint, which counts from 0, with the old id leads there. Delta reports nothing.
How to confirm: look for `txn` in the newest entries of `_delta_log`, and for `txnAppId` in the batch function.
What to do: give the function a new `txnAppId` together with a new checkpoint; then read the batches that were skipped
again, by a backfill of their range.
Is the remedy safe: yes, if the new id belongs to the new checkpoint alone: with a new id for the old checkpoint an
interrupted batch is written twice.
References: Delta Lake documentation, "Idempotent table writes in foreachBatch"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.transactions import only_other_application


class Ahead(NamedTuple):
    """The application id, its newest number, and the next batch."""

    application: str
    newest: int
    batch: int


def find(facts: Facts) -> Iterator[Ahead]:
    """The one other application of an output, where its number is not below the next batch.

    An id with the form of a query id is that of a sink which takes it from the query (SW-LOG-014).
    """
    other = only_other_application(facts)
    if other is not None and not other.is_query and other.newest >= facts.marks.next_batch:
        yield Ahead(other.id, other.newest, facts.marks.next_batch)


CHECK = Check(
    "SW-DELTA-001",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the table has transactions of {it.application} up to {it.newest}: a batch function that writes with this "
    "txnAppId skips batches {it.batch} to {it.newest} silently",
    risk="skip",
    goal="backfill",
    certainty="likely",
    where="{facts.sink.seen.location}",
    expected="transactions below {it.batch}",
    found="{it.newest}",
    advice="give the batch function a new txnAppId together with the new checkpoint",
    needs=("sink",),
)
