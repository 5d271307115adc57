"""The range of a batch goes back: two queries may use the checkpoint.

What it finds: a batch of `offsets/` ends before the batch that precedes it, or the kind of a source changes and
changes back.
Why it matters: One query only goes forward. Two different queries on one checkpoint overwrite each other's progress:
each skips silently what the other has read. An edit by hand, or a source that was created again, looks alike.
How to confirm: `slackwater inspect LOCATION` shows the offsets of each batch; look for a second program with the same
checkpoint location.
What to do: stop all but one of the queries, and give each a checkpoint of its own. Then process the ranges that one
has skipped in a batch job.
Is the remedy safe: yes, as long as the query that keeps the checkpoint is the one whose sources it has. To let both
run loses rows of both.
References: Structured Streaming Programming Guide, Recovering from Failures with Checkpointing
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from slackwater.core.checkpoint import BatchLine, SourceEnd
from slackwater.core.errors import FormatError
from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.sources import kind_of
from slackwater.sources.common.contract import SourceRange


class Back(NamedTuple):
    """The batch, its source, what is wrong with its range, and what the batch before has."""

    batch: int
    source: str
    what: str
    expected: str
    now: str


def find(facts: Facts) -> Iterator[Back]:
    """The newest batch of each source that goes back; then sources whose kind changes to and fro."""
    found = {back.source: back for back in (*_kinds(facts), *_positions(facts))}
    yield from found.values()


def _planned(facts: Facts) -> list[BatchLine]:
    return [line for line in facts.checkpoint.report.batches if line.planned and line.sources]


def _positions(facts: Facts) -> Iterator[Back]:
    for earlier, later in pairwise(_planned(facts)):
        starts = {end.name: end for end in earlier.sources}
        for end in later.sources:
            start = starts.get(end.name)
            if start is not None and _goes_back(start, end):
                what = f"ends before batch {earlier.id} does"
                yield Back(later.id, end.name, what, f"a position after {start.end}", f"{end.end}")


def _goes_back(start: SourceEnd, end: SourceEnd) -> bool:
    if start.end is None or end.end is None or start.end == end.end:
        return False
    kind = kind_of(end.end, {})
    if kind_of(start.end, {}) != kind:
        return False
    try:
        counted = kind.counted(SourceRange(end.name, start.end, end.end))
    except FormatError:
        return False
    return any(count is not None and count < 0 for count in (counted or {}).values())


def _kinds(facts: Facts) -> Iterator[Back]:
    """A kind that is there again after another one."""
    seen: dict[str, list[str]] = {}
    for line in _planned(facts):
        for end in line.sources:
            if end.end is None:
                continue
            kinds, kind = seen.setdefault(end.name, []), kind_of(end.end, {}).kind
            if kinds and kind != kinds[-1] and kind in kinds:
                yield Back(line.id, end.name, f"is of {kind} again, after {kinds[-1]}", f"offsets of {kinds[-1]}", kind)
            if not kinds or kinds[-1] != kind:
                kinds.append(kind)


CHECK = Check(
    "SW-SHARE-003",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="the range of source {it.source} in batch {it.batch} {it.what}: two queries may use this checkpoint, each "
    "skipping what the other has read",
    risk="skip",
    goal="backfill",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="{it.expected}",
    found="{it.now}",
    certainty="possible",
    advice="look for another program with this checkpoint location, stop it, and give each query its own checkpoint",
)
