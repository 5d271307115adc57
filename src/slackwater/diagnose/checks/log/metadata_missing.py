"""The file metadata is missing, and the logs have batches.

What it finds: the checkpoint has entries in `offsets/` or `commits/`, and no file `metadata`, which has the id of the
query. It is the oldest file of a checkpoint: a rule of the store that removes old files removes it first.
Why it matters: Spark up to 4.1 silently gives the query a new id. A sink that knows batches by that id, as Delta's
own does, accepts an interrupted batch a second time. From 4.2 on Spark refuses to start.
How to confirm: `slackwater inspect LOCATION` shows no query id.
What to do: write the file again with the id of the query, as the finding shows it. The ledger has the id; else the
driver's log and the query's progress events have it. Exclude the checkpoint and the output from every lifecycle rule
and cleaner of temporary files.
Is the remedy safe: yes, with the id that the query had. A new id, or a new checkpoint, is not: the sink takes the
query for another.
References: SPARK-55058
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import write_query_id


class NoId(NamedTuple):
    """The id that the query had, where it is recorded, and what writes it."""

    query_id: str | None
    how: str


def find(facts: Facts) -> Iterator[NoId]:
    """Logs with batches next to no file with the id."""
    checkpoint = facts.checkpoint
    if checkpoint.has("metadata") or not (checkpoint.offset_ids or checkpoint.commit_ids):
        return
    known = facts.snapshot.generation.query_id
    yield NoId(known, write_query_id(checkpoint, known))


CHECK = Check(
    "SW-LOG-012",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the file metadata is missing: Spark up to 4.1 gives the query a new id, by which a sink takes an interrupted "
    "batch twice, and from 4.2 on refuses to start",
    risk="duplicate",
    goal="resume",
    where="{facts.checkpoint.location}/metadata",
    expected="the id of the query",
    found="nothing",
    advice="{it.how}",
    also=("STORE-04",),
    damage=lambda _: ("metadata",),
)
