"""What a source no longer has of the position of the next batch, by the kind's own word for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, Unknown


class Lacking(NamedTuple):
    """A source, the first part of it with this problem, what was compared, how many parts, and records in all."""

    source: str
    place: str
    expected: str
    found: str
    parts: int
    records: int


def with_problem(problem: str) -> Callable[[Facts], Iterator[Lacking]]:
    """What looks for a problem that a kind of source reports: each source with it once."""

    def find(facts: Facts) -> Iterator[Lacking]:
        for source in facts.sources:
            found = () if isinstance(source.unserved, Unknown) else source.unserved
            mine = [one for one in found if one.problem == problem]
            if mine:
                first, records = mine[0], sum(one.records for one in mine)
                yield Lacking(source.name, first.place, first.expected, first.found, len(mine), records)

    return find
