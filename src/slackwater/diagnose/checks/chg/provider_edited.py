"""The state store provider is not the pinned one.

What it finds: the newest batch pins a state store provider whose files are of another form than those in `state/`.
Why it matters: Spark reads the state with the pinned provider, finds no file of its form, and fails with a message
about a missing file, at every start.
How to confirm: compare the setting with the provider in `slackwater inspect STREAM --operators`.
What to do: restore the entry in `offsets/` from a copy of the checkpoint; or `slackwater plan rebuild STREAM`.
Is the remedy safe: yes; the output is not touched. A provider is never changed by an edit of `offsets/`: the state has
to be computed again.
References: SPARK-34198; Structured Streaming Programming Guide, "State Store"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild
from slackwater.diagnose.checks.common.settings import PROVIDER, settings_of

_FORMS = {"HDFSBackedStateStoreProvider": "hdfs", "RocksDBStateStoreProvider": "rocksdb"}


class Edited(NamedTuple):
    """The newest batch, the class that it pins, and the form of the files."""

    batch: int
    pinned: str
    files: str


def find(facts: Facts) -> Iterator[Edited]:
    """A pinned provider of Spark's own that has no file, where another one has."""
    checkpoint = facts.checkpoint
    pinned = settings_of(checkpoint.newest_offset).get(PROVIDER, "").rpartition(".")[2]
    found = {held.provider for _, _, _, held in checkpoint.inventory.each()} - {None}
    if pinned in _FORMS and found and _FORMS[pinned] not in found:
        yield Edited(checkpoint.planned, pinned, " and ".join(sorted(str(one) for one in found)))


CHECK = Check(
    "SW-CHG-009",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="batch {it.batch} pins {it.pinned}, and the files of the state are those of the {it.files} provider",
    risk="stuck",
    goal="rebuild",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="the provider of the files in state/: {it.files}",
    found="{it.pinned}",
    next=rebuild,
    advice="restore offsets/{it.batch} from a copy of the checkpoint",
)
