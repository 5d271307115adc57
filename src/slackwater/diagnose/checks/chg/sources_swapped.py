"""Two sources have changed places.

What it finds: one source of the checkpoint now reads what another one read before, and the other way round.
Why it matters: Spark keeps positions by the number of a source. Swapped in the code, as in a union written the other
way round, each source continues at the position of the other: files are read a second time, and rows are left out.
How to confirm: `slackwater inspect STREAM` shows the sources; compare the first and the last entry of both logs.
What to do: swap the sources back in the code, and compare it with `slackwater check FILE` before it starts.
Is the remedy safe: it stops further damage. Rows that were read twice since are in the output: process the batches
since the swap again, with `slackwater plan replay STREAM --from batch:N`.
References: Structured Streaming Programming Guide, "Recovery Semantics after Changes in a Streaming Query"
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from slackwater.core.commands import check_command
from slackwater.core.facts import Facts, SourceFacts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check


class Swapped(NamedTuple):
    """Two sources, and what each of them read at first."""

    one: str
    other: str
    one_read: str
    other_read: str


def find(facts: Facts) -> Iterator[Swapped]:
    """Pairs of sources of which each ends with what the other one began with."""
    for one, other in combinations(facts.sources, 2):
        (first, last), (other_first, other_last) = _places(one), _places(other)
        if first and other_first and first.isdisjoint(other_first) and (first, other_first) == (other_last, last):
            yield Swapped(one.name, other.name, min(first), min(other_first))


def _places(source: SourceFacts) -> tuple[frozenset[str], frozenset[str]]:
    """The folders of the files in the oldest and in the newest entry of the source's log."""
    files = source.log.entries if source.log is not None else ()
    if not files:
        return frozenset(), frozenset()
    entries = [file.log_offset for file in files]
    first, last = min(entries), max(entries)
    return (
        frozenset(_folder(file.path) for file in files if file.log_offset == first),
        frozenset(_folder(file.path) for file in files if file.log_offset == last),
    )


def _folder(path: str) -> str:
    """The folder of a file, without the folders of partitions (``key=value``)."""
    parts = path.split("/")[:-1]
    while parts and "=" in parts[-1]:
        parts.pop()
    return "/".join(parts)


CHECK = Check(
    "SW-CHG-002",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="sources {it.one} and {it.other} have changed places: each continues at the position of the other",
    risk="duplicate",
    certainty="likely",
    where="{facts.checkpoint.location}/sources/{it.one}",
    expected="files in {it.one_read}",
    found="files in {it.other_read}",
    next=lambda facts, _: check_command(facts.snapshot.stream),
    advice="swap the sources back in the code before the query is started again",
)
