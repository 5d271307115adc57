from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.facts import CheckpointSeen, Facts
from slackwater.sources import kind_of

UNPARSED = frozenset({"empty", "torn", "foreign", "unreadable"})
"""Damage of an entry that no Spark can parse."""


def has_gaps_by_design(checkpoint: CheckpointSeen) -> bool:
    """Whether both logs lack the same batches, as asynchronous progress tracking leaves them (performance tips)."""
    offsets, commits = set(checkpoint.offset_ids), set(checkpoint.commit_ids)
    # The newest planned batch may not be committed yet.
    if not commits or (offsets ^ commits) - {max(offsets, default=-1)}:
        return False
    return len(commits) < max(commits) - min(commits) + 1


def unplanned_commits(checkpoint: CheckpointSeen) -> tuple[int, ...]:
    """Batches in ``commits/`` newer than all of ``offsets/``, without strays."""
    strays = {number for folder, number in strays_in_logs(checkpoint) if folder == "commits"}
    return tuple(one for one in checkpoint.commit_ids if one > checkpoint.planned and one not in strays)


def strays_in_logs(checkpoint: CheckpointSeen) -> Iterator[tuple[str, int]]:
    """A newest entry far behind all others of both logs: no query has written it."""
    if has_gaps_by_design(checkpoint):
        return
    for folder, ids, others in (
        ("offsets", checkpoint.offset_ids, checkpoint.commit_ids),
        ("commits", checkpoint.commit_ids, checkpoint.offset_ids),
    ):
        if len(ids) > 1 and others and ids[-1] - 1 > max(ids[-2], others[-1] + 1):
            yield folder, ids[-1]


def strays_in_sources(facts: Facts) -> Iterator[tuple[str, int]]:
    """The newest entry of a source's log, behind a gap, that no batch has read."""
    for source in facts.sources:
        last = kind_of(source.end, {}).cut_entry(source.end)
        if last is not None and len(source.entries) > 1 and source.entries[-1] - 1 > max(source.entries[-2], last):
            yield f"sources/{source.name}", source.entries[-1]
