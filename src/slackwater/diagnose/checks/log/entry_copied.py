"""An entry of a log is a copy of an older one.

What it finds: two batches of `offsets/` were planned in the same millisecond with the same settings; or two entries of
`commits/` name the same state. Each batch has a time and state of its own, so that one of the two is a copy. Spark's
offline repartition, which keeps the time, changes a setting.
Why it matters: Spark believes the entry. Rows between the two positions are read twice or never, and state of another
batch is loaded.
How to confirm: `slackwater inspect LOCATION` shows time, watermark and offsets of each batch; compare the two files.
What to do: restore the entry from a copy of the checkpoint. Where there is none, and the entry is not one of the
newest two, Spark does not read it when it starts: only a rollback to its batch is not possible.
Is the remedy safe: yes. To delete the entry instead has its batch read again, or makes the log unreadable.
References: docs/decisions/0590-damage-without-checksums.md
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from slackwater.core.checkpoint import BatchLine
from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.units import utc_text
from slackwater.diagnose.checks.common.check import Check


class Copied(NamedTuple):
    """The folder of the log, both batches, what they share, and its value in the older one."""

    log: str
    batch: int
    older: int
    what: str
    value: str


def find(facts: Facts) -> Iterator[Copied]:
    """The newest copy in each log. A plan of Slackwater's may copy entries: of a recorded stream the ledger has all."""
    if facts.recorded:
        return
    lines = facts.checkpoint.report.batches
    yield from [*_plans(lines)][-1:]
    yield from [*_commits(lines)][-1:]


def _plans(lines: tuple[BatchLine, ...]) -> Iterator[Copied]:
    for earlier, later in pairwise(line for line in lines if line.planned and line.timestamp_ms):
        # An offline repartition keeps the time, too, but changes a setting.
        if earlier.timestamp_ms == later.timestamp_ms and earlier.settings == later.settings:
            yield Copied("offsets", later.id, earlier.id, "time of planning", utc_text(later.timestamp_ms or 0))


def _commits(lines: tuple[BatchLine, ...]) -> Iterator[Copied]:
    seen: dict[str, int] = {}
    for line in lines:
        shared = [identity for identity in sorted(line.state_ids) if identity in seen]
        if shared:
            yield Copied("commits", line.id, seen[shared[0]], "state", f"state id {shared[0]}")
        seen.update(dict.fromkeys(line.state_ids, line.id))


CHECK = Check(
    "SW-LOG-018",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="{it.log}/{it.batch} has the {it.what} of batch {it.older}: one of the two entries is a copy of another",
    risk="wrong",
    goal="rebuild",
    certainty="likely",
    where="{facts.checkpoint.location}/{it.log}/{it.batch}",
    expected="a {it.what} of its own",
    found="{it.value}, as in {it.log}/{it.older}",
    at_stake="the rows between the positions of batches {it.older} and {it.batch}",
    advice="restore {it.log}/{it.batch} or {it.log}/{it.older} from a copy of the checkpoint",
)
