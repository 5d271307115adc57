"""Batches are committed that are not planned: commits/ is ahead of offsets/.

What it finds: the newest entry of `commits/` is newer than the newest entry of `offsets/`.
Why it matters: Spark runs the newest planned batch again, and after its rows are written fails with "Multiple
streaming jobs detected", without a second job. A sink that does not skip batches gets the rows at each restart.
How to confirm: `slackwater inspect STREAM` lists the entries of both logs.
What to do: stop whatever restarts the query. `slackwater plan resume STREAM` writes the entries again from the
ledger's copies. Without a ledger, restore them from a copy of the checkpoint.
Is the remedy safe: yes; an entry is what Spark wrote, and the commits stay. The popular remedies are not: to look for
the second job finds none, to delete the newest commits has the batches planned again with other ranges, which an
at-least-once sink gets twice and a file sink skips, and to delete the checkpoint reads everything again.
References: SPARK-43542
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.core.sink import newest_batch
from slackwater.core.units import batch_range
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild, resume
from slackwater.diagnose.checks.common.logs import unplanned_commits


class Ahead(NamedTuple):
    """The committed batches without a plan, the newest planned batch, the batch that a start runs, and what doubles."""

    batches: tuple[int, ...]
    planned: int
    runs: int
    at_stake: str

    @property
    def named(self) -> str:
        """The batches, in words."""
        return batch_range(self.batches[0], self.batches[-1])

    @property
    def newest(self) -> str:
        """The newest planned batch, in words."""
        return newest_batch(self.planned)


def find(facts: Facts) -> Iterator[Ahead]:
    """Commits above the newest plan, other than a number that no query has written (SW-STORE-007)."""
    batches = unplanned_commits(facts.checkpoint)
    if batches:
        # `populateStartOffsets`: without an entry in offsets/ Spark starts with batch 0.
        runs = max(facts.checkpoint.planned, 0)
        yield Ahead(batches, facts.checkpoint.planned, runs, _at_stake(facts, runs))


def _at_stake(facts: Facts, batch: int) -> str:
    """Nothing where every output is known to skip the batch; without an output it is a condition."""
    outputs = facts.snapshot.outputs
    if not isinstance(facts.sink, Unknown) and all(
        one.batches_skipped and one.written is not None and one.written >= batch for one in outputs
    ):
        return ""
    unless = ", unless the sink skips batches that it has" if isinstance(facts.sink, Unknown) else ""
    return f"the rows of batch {batch}, once more at each start{unless}"


def next_command(facts: Facts, it: Ahead) -> str:
    """Without any plan there is nothing to resume from."""
    return resume(facts, it) if it.planned >= 0 else rebuild(facts, it)


CHECK = Check(
    "SW-LOG-007",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="commits/ has {it.named}, offsets/ does not: each start runs batch {it.runs} again and then fails, as "
    "if a second job used the checkpoint",
    risk="duplicate",
    goal="resume",
    where="{facts.checkpoint.location}/offsets",
    expected="entries of {it.named}",
    found="{it.newest}",
    at_stake="{it.at_stake}",
    next=next_command,
    advice="stop all restarts of the query; restore the entries of {it.named} in offsets/ from a copy of the "
    "checkpoint, or write them from the end offsets in the query's progress events",
    also=("MOVE-02",),
    damage=lambda it: ("offsets", *(f"offsets/{batch}" for batch in it.batches)),
)
