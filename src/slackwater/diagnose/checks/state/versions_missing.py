"""Versions of state between others cannot be loaded.

What it finds: a store can load an older and a newer version of its state, and not one between them: a file is missing
that no release of Spark removes alone. The checkpoint is not recorded.
Why it matters: Spark starts, as it loads the newest version only. A rollback, a rebuild or a state reader that needs
one of these versions fails.
How to confirm: `slackwater inspect LOCATION` shows the versions that each operator can load.
What to do: nothing for a start. Find out what removes files from the checkpoint, before it removes one that a start
reads.
Is the remedy safe: yes; nothing is changed.
References: Structured Streaming Programming Guide, "State Store"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.holes import holes
from slackwater.diagnose.checks.common.check import Check


class Hole(NamedTuple):
    """The first store with missing versions, the first of them, and the number of stores."""

    path: str
    version: int
    stores: int


def find(facts: Facts) -> Iterator[Hole]:
    """Stores that load a version before and one after those that they cannot load."""
    if facts.recorded:
        return
    found = []
    for operator, partition, _, held in facts.checkpoint.inventory.each():
        if held.ids:
            # What format 2 keeps of older versions is known from the commits only.
            continue
        oldest = min(held.loadable, default=held.newest_loadable)
        missing = next(holes(oldest, held.newest_loadable - 1, held.loadable), None)
        if missing:
            found.append((f"state/{operator}/{partition}", missing[0]))
    if found:
        yield Hole(*found[0], len(found))


CHECK = Check(
    "SW-STATE-015",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="{it.path} cannot load version {it.version}, which is between others: a start does not read it, but a "
    "rollback or rebuild to its batch is not possible",
    risk="none",
    goal="resume",
    where="{facts.checkpoint.location}/{it.path}",
    expected="the files of version {it.version}",
    found="none, in {it.stores} stores",
    advice="find out what removes files from the checkpoint",
)
