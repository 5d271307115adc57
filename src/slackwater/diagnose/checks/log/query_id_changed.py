"""The query id is not the one that wrote the output.

What it finds: the file `metadata` has another query id than the ledger recorded for this checkpoint; or the only
transactions in the log of the output are those of another query id, and the checkpoint has committed batches.
Why it matters: Delta's and Iceberg's own sinks know a batch by the query id and the number. Under another id they
accept a batch that runs again a second time. Spark starts, and reports nothing.
How to confirm: `slackwater inspect LOCATION` shows the query id; look for `txn` in the newest entries of
`_delta_log`, and for `spark.sql.streaming.queryId` in the snapshots of an Iceberg table.
What to do: write the recorded id into the file `metadata`, with the command of the finding, before the next start.
Is the remedy safe: yes, if the output was written by this checkpoint. Where the output belongs to another query, give
this one an output of its own.
References: SPARK-55058; Delta Lake documentation, Idempotent table writes in foreachBatch
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import write_query_id
from slackwater.diagnose.checks.common.transactions import only_other_application


class OtherId(NamedTuple):
    """The query id of the checkpoint, the other one and where that is from, the next batch, and what writes it."""

    query_id: str
    other: str
    by: str
    batch: int
    how: str


def find(facts: Facts) -> Iterator[OtherId]:
    """The recorded id, else that of the output's only transactions, where it is not that of the checkpoint."""
    checkpoint = facts.checkpoint
    query_id = checkpoint.report.query_id
    if query_id is None or checkpoint.committed < 0:
        return
    recorded, other = facts.snapshot.generation.query_id, only_other_application(facts)
    if recorded is not None and recorded != query_id:
        yield _case(facts, query_id, recorded, "the ledger")
    elif other is not None and other.is_query:
        yield _case(facts, query_id, other.id, "the output")


def _case(facts: Facts, query_id: str, other: str, by: str) -> OtherId:
    return OtherId(query_id, other, by, facts.marks.next_batch, write_query_id(facts.checkpoint, other))


CHECK = Check(
    "SW-LOG-014",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="the query id of the checkpoint is {it.query_id}, and {it.by} has {it.other}: a sink that knows batches by "
    "the query id accepts a batch that runs again a second time",
    risk="duplicate",
    goal="resume",
    certainty="likely",
    where="{facts.checkpoint.location}/metadata",
    expected="{it.other}",
    found="{it.query_id}",
    at_stake="the rows of batch {it.batch}, if it has run already",
    advice="if the output was written by this checkpoint: {it.how}",
)
