"""The ids of state versions are lost.

What it finds: the files of the state have ids in their names (checkpoint format 2), and no commit names them.
Why it matters: only `commits/` says which files belong to a batch. Without it Spark looks for files without ids and
fails with "1.changelog does not exist".
How to confirm: `slackwater inspect STREAM` shows the entries of both logs.
What to do: restore `commits/` from a copy of the checkpoint; or `slackwater plan rebuild STREAM`, which computes the
state again.
Is the remedy safe: yes; the output is not touched. Several attempts of a batch leave several ids: to choose one by hand
can mix the state of two attempts. With this format an entry of `commits/` must not be deleted to run a batch again.
References: Structured Streaming Programming Guide, "State Store"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild


class Lost(NamedTuple):
    """The newest state version with an id, and where the commit is or should be."""

    version: int
    commit: int


def find(facts: Facts) -> Iterator[Lost]:
    """State with ids of a query that has planned a second batch, where the newest commit names none."""
    checkpoint = facts.checkpoint
    if checkpoint.planned < 1 and checkpoint.committed < 0:
        # The first attempt of batch 0 has written state, and nothing is committed yet.
        return
    commit = checkpoint.newest_commit
    if (commit is not None and commit.state_unique_ids) or (commit is None and checkpoint.commit_ids):
        return
    versions = [version for _, _, _, held in checkpoint.inventory.each() for version, _ in held.ids]
    if versions:
        yield Lost(max(versions), max(checkpoint.committed, checkpoint.planned - 1))


CHECK = Check(
    "SW-STATE-011",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the files of the state have ids, up to version {it.version}, and no commit names them: "
    "which of them belong to a batch is unknown",
    risk="stuck",
    goal="rebuild",
    where="{facts.checkpoint.location}/commits/{it.commit}",
    expected="a commit that names the ids of its state",
    found="none",
    next=rebuild,
    advice="restore {facts.checkpoint.location}/commits from a copy of the checkpoint",
    explains=("state-lost",),
)
