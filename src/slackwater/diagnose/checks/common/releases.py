"""The releases of Spark that have run a checkpoint."""

from __future__ import annotations

from typing import NamedTuple

from slackwater.core.facts import Facts, HistoryFacts


class Releases(NamedTuple):
    """The newest release of earlier runs, that of the last run, and whether the last one is newer."""

    before: str
    now: str
    is_upgrade: bool


def changed_release(facts: Facts) -> Releases | None:
    """The releases, where the last run of this checkpoint had another minor release than the newest one before."""
    last, *earlier = releases(facts) or [""]
    if not earlier:
        return None
    before = max(earlier, key=minor_release)
    if minor_release(before) == minor_release(last):
        return None
    return Releases(before, last, minor_release(last) > minor_release(before))


def releases(facts: Facts) -> list[str]:
    """The releases of the runs of this checkpoint, the last run's first; none where they were not read."""
    if not isinstance(facts.history, HistoryFacts):
        return []
    generation = facts.snapshot.generation.number
    return [run.spark_version for run in facts.history.runs if run.generation == generation]


def minor_release(version: str) -> tuple[int, ...]:
    """``(4, 0)`` of ``4.0.5``."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
