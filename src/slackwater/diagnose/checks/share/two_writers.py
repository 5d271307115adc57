"""Two drivers may have written to the checkpoint.

What it finds: a batch of `offsets/` was planned at an earlier time than the batch before it; or two temporary files
in `offsets/` or `commits/` were to become the same entry.
Why it matters: Spark keeps no lock. The slower driver fails with "Multiple streaming jobs detected", after it may
have written the rows of its batch: a sink that does not know batches has them twice. Clocks of two hosts that differ,
and two crashes in the same batch, look alike.
How to confirm: ask the scheduler which applications ran at the time of the batch, as `slackwater inspect LOCATION`
shows it, and look for an older driver that still runs.
What to do: stop all drivers but one. Compare the rows of the batch with the output; then start the query.
Is the remedy safe: yes; nothing is changed. To delete the checkpoint because of the message reads everything again.
References: SPARK-43542; SPARK-26425
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from slackwater.core.facts import CheckpointSeen, Facts
from slackwater.core.finding import Severity
from slackwater.core.units import utc_text
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.temporary import temporary_files

_LOGS = frozenset({"offsets", "commits"})


class Twice(NamedTuple):
    """The batch, its entry, what is wrong with it, and both values."""

    batch: int
    path: str
    what: str
    expected: str
    now: str


def find(facts: Facts) -> Iterator[Twice]:
    """The newest batch that was planned before its predecessor; then entries with two temporary files."""
    yield from list(_times(facts.checkpoint))[-1:]
    attempts = Counter(
        (one.folder, int(one.target))
        for one in temporary_files(facts.checkpoint)
        if one.folder in _LOGS and one.target.isascii() and one.target.isdigit()
    )
    for (folder, batch), files in sorted(attempts.items()):
        if files > 1:
            what = f"has {files} temporary files"
            yield Twice(batch, f"{folder}/{batch}", what, "one temporary file at most", f"{files} of them")


def _times(checkpoint: CheckpointSeen) -> Iterator[Twice]:
    planned = [line for line in checkpoint.report.batches if line.planned and line.timestamp_ms is not None]
    for earlier, later in pairwise(planned):
        before, after = earlier.timestamp_ms or 0, later.timestamp_ms or 0
        if after < before:
            what = f"was planned before batch {earlier.id}"
            yield Twice(later.id, f"offsets/{later.id}", what, f"a time after {utc_text(before)}", utc_text(after))


CHECK = Check(
    "SW-SHARE-001",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="batch {it.batch} {it.what}: two drivers may have used this checkpoint at the same time",
    risk="duplicate",
    goal="resume",
    certainty="possible",
    where="{facts.checkpoint.location}/{it.path}",
    expected="{it.expected}",
    found="{it.now}",
    at_stake="the rows of batch {it.batch}, where the sink does not know batches",
    advice="look for a second driver of the query, and stop it; then compare the rows of batch {it.batch} with the "
    "output",
)
