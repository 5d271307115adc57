"""A file is missing, and its temporary file is there: a rename was lost.

What it finds: an entry of `offsets/` or `commits/`, or a delta or changelog of state, is missing below newer ones,
and the temporary file that was to become it is in the same folder.
Why it matters: Spark writes a temporary file and renames it. A store that reports the rename and does not make it
leaves the file missing; a start, or a rollback to that batch, fails later.
How to confirm: list the folder with its hidden files; `slackwater doctor LOCATION --verify` reads all files of state.
What to do: restore the missing file from a copy of the checkpoint; `slackwater plan rebuild STREAM` computes state
again. The temporary file has the content only if its write was finished.
Is the remedy safe: yes; nothing that Spark reads is removed. To rename the temporary file is not, where it was cut:
Spark then reads a part of the state, or refuses it.
References: SPARK-40826
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from slackwater.core.facts import CheckpointSeen, Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import resume
from slackwater.diagnose.checks.common.temporary import Temporary, temporary_files

_CHANGES = frozenset({"delta", "changelog"})
"""Whole state (``snapshot``, ``zip``) is written when it suits Spark; no version needs one."""


class Lost(NamedTuple):
    """The missing file and its temporary one, as paths in the checkpoint."""

    path: str
    temporary: str


def find(facts: Facts) -> Iterator[Lost]:
    """Temporary files of entries that a later one has followed."""
    checkpoint = facts.checkpoint
    found = (one for one in temporary_files(checkpoint) if _is_lost(checkpoint, one))
    yield from {path: Lost(path, one.path) for one in found if (path := f"{one.folder}/{one.target}")}.values()


def _is_lost(checkpoint: CheckpointSeen, one: Temporary) -> bool:
    names = checkpoint.folders.get(one.folder, ())
    number, _, kind = one.target.partition(".")
    if not (number.isascii() and number.isdigit()) or one.target in names:
        return False
    last = {
        "offsets": max(checkpoint.planned, checkpoint.committed),
        # The newest planned batch may have been interrupted while its commit was written.
        "commits": checkpoint.planned - 1,
    }.get(one.folder, checkpoint.committed + 1 if one.folder.startswith("state/") and kind in _CHANGES else -1)
    versions = _versions(names)
    # Below the oldest one Spark has removed what it no longer needs.
    return int(number) not in versions and min(versions, default=int(number)) <= int(number) <= last


def _versions(names: Sequence[str]) -> frozenset[int]:
    """The numbers that the names of a folder begin with; one of format 2 has an id after an underscore."""
    found = (name.partition(".")[0].partition("_")[0] for name in names)
    return frozenset(int(number) for number in found if number.isascii() and number.isdigit())


CHECK = Check(
    "SW-STORE-002",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="{it.path} is missing, and its temporary file is there: the store has lost a rename",
    risk="stuck",
    goal="resume",
    certainty="likely",
    where="{facts.checkpoint.location}/{it.path}",
    expected="the file that Spark wrote",
    found="{it.temporary}",
    next=resume,
    advice="restore {it.path} from a copy of the checkpoint; look for other renames that the store has lost",
)
