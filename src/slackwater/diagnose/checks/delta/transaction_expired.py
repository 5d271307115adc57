"""The output does not know the batch that runs again.

What it finds: the next batch is planned and will run again, and the log of the output has no transaction of the
query: it has expired, or the batch function writes without one.
Why it matters: Delta's and Iceberg's own sinks skip a batch that their log shows. A transaction that was removed, by
`delta.setTransactionRetentionDuration` or with the snapshots that expired, shows nothing: the batch is written again.
How to confirm: look for `txn` with the query id in `_delta_log`, and in the history of the table for the time of the
batch.
What to do: compare the newest rows of the output with the range of the batch, which `slackwater inspect LOCATION`
shows, before the query is started; delete the rows that are there already.
Is the remedy safe: yes, if only rows of this batch are deleted. To delete the checkpoint instead writes all rows
again.
References: Delta Lake documentation, "Idempotent table writes in foreachBatch"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.transactions import only_other_application


class Forgotten(NamedTuple):
    """The query id, and the batch that runs again."""

    query_id: str
    batch: int


def find(facts: Facts) -> Iterator[Forgotten]:
    """A planned batch next to an output that lists transactions, and none of the query.

    A single other application is SW-LOG-014 or SW-DELTA-001.
    """
    checkpoint, query_id = facts.checkpoint, facts.checkpoint.report.query_id
    if isinstance(facts.sink, Unknown) or facts.sink.transactions is None or query_id is None:
        return
    if checkpoint.committed < 0 or not checkpoint.marks.next_is_planned or query_id in facts.sink.transactions:
        return
    if only_other_application(facts) is None:
        yield Forgotten(query_id, facts.marks.next_batch)


CHECK = Check(
    "SW-DELTA-004",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="batch {it.batch} will run again, and the output has no transaction of query {it.query_id}: if the batch was "
    "written before, its rows are written a second time",
    risk="duplicate",
    goal="resume",
    certainty="possible",
    where="{facts.sink.seen.location}",
    expected="a transaction of query {it.query_id}",
    found="none",
    at_stake="the rows of batch {it.batch}",
    advice="compare the newest rows of the output with the range of batch {it.batch}, and delete those that are there, "
    "before the query is started",
    needs=("sink",),
)
