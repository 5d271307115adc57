"""Entries of older batches are missing in a log.

What it finds: entries of `offsets/` below the newest two, or of `commits/` below the newest, are missing between
others, in a checkpoint that is not recorded.
Why it matters: Spark starts, as it reads the newest entries only. A rollback, a rebuild or a state reader that needs
one of these batches fails.
How to confirm: `slackwater inspect LOCATION` lists the entries of both logs.
What to do: nothing for a start. Find out what removes files from the checkpoint, before it removes one that a start
reads.
Is the remedy safe: yes; nothing is changed. To delete more entries so that the log has no gap only loses more of the
history.
References: SPARK-38033
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check


class Old(NamedTuple):
    """The missing entries, as paths in the checkpoint."""

    paths: tuple[str, ...]


def find(facts: Facts) -> Iterator[Old]:
    """Missing entries that no start reads. Of a recorded stream the number line reports them, and can restore them."""
    checkpoint = facts.checkpoint
    missing = (one.path for one in checkpoint.start_damage if one.kind == "missing")
    paths = tuple(path for path in missing if _is_unread(path, checkpoint.planned, checkpoint.committed))
    if paths and not facts.recorded:
        yield Old(paths)


def _is_unread(path: str, planned: int, committed: int) -> bool:
    """Whether a start does not read this entry: it reads two of ``offsets/`` and one of ``commits/``."""
    folder, _, name = path.partition("/")
    newest = {"offsets": planned - 1, "commits": min(committed, planned)}.get(folder)
    return newest is not None and name.isdigit() and int(name) < newest


CHECK = Check(
    "SW-LOG-010",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="{it.paths[0]} is missing between other entries: a start does not read it, but a rollback or rebuild to its "
    "batch is not possible",
    risk="none",
    goal="resume",
    where="{facts.checkpoint.location}/{it.paths[0]}",
    expected="the entry that Spark wrote",
    found="nothing",
    advice="find out what removes files from the checkpoint",
    damage=lambda it: it.paths,
)
