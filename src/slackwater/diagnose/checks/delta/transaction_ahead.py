"""The output has transactions of another application that are ahead of the checkpoint.

What it finds: the only transactions in the log of the Delta table belong to an application id that is not the query's
own, and their number is not below the next batch of the checkpoint.
Why it matters: a batch function that passes this id as `txnAppId` to Delta writes nothing until its batches have passed
that number. A new checkpoint, which counts from 0, with the old id leads there. Delta reports nothing.
How to confirm: look for `txn` in the newest entries of `_delta_log`, and for `txnAppId` in the batch function.
What to do: if the checkpoint is newer than the transactions, none of its batches has written anything: give the
function a new `txnAppId`, move the checkpoint away, and start the query where this one started. If the checkpoint was
restored from a backup, the batches before the next one are in the table: give the function a new `txnAppId`, delete the
rows of the batches after it from the table, and continue.
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
from slackwater.diagnose.checks.common.commands import move_checkpoint_away
from slackwater.diagnose.checks.common.transactions import only_other_application


class Ahead(NamedTuple):
    """The application id, its newest number, and the next batch; ``set_aside``: how to begin with a new checkpoint."""

    application: str
    newest: int
    batch: int
    set_aside: str


def find(facts: Facts) -> Iterator[Ahead]:
    """The one other application of an output, where its number is not below the next batch.

    An id with the form of a query id is that of a sink which takes it from the query (SW-LOG-014).
    """
    other = only_other_application(facts)
    if other is not None and not other.is_query and other.newest >= facts.marks.next_batch:
        yield Ahead(other.id, other.newest, facts.marks.next_batch, move_checkpoint_away(facts.checkpoint))


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
    advice="give the batch function a new txnAppId; if the checkpoint is newer than the transactions, none of its "
    "batches has written anything; then start the query where this one started, after {it.set_aside}",
    needs=("sink",),
)
