"""The state of an operator is not where its metadata is.

What it finds: the checkpoint is on a local disk, has the metadata of a stateful operator and committed batches, and
no partition of that operator has any state.
Why it matters: the driver writes logs and metadata, the executors write state. On a cluster a path without a scheme
is the local disk of each machine: the state is on the executors' disks, and a start on other machines fails.
How to confirm: look for the same path on the machines of the executors; `slackwater inspect LOCATION --operators`
shows the operators. State that was deleted, and a batch function that reads no row, look alike.
What to do: copy the state from the executors' disks into the checkpoint, move the checkpoint to a store that all
machines reach, and use its URI; or `slackwater plan rebuild STREAM`, which computes the state again.
Is the remedy safe: yes, while the query is stopped. To start it as it is loses the state, or fails.
References: Structured Streaming Programming Guide, "Recovering from Failures with Checkpointing"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import CheckpointSeen, Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild

_METADATA = re.compile(r"state/(\d+)/_metadata(/v2)?")


class WithoutState(NamedTuple):
    """An operator, and the newest committed batch."""

    operator: int
    committed: int


def find(facts: Facts) -> Iterator[WithoutState]:
    """Operators with metadata and without a file of state. Of format 2 the commit names state: SW-STATE-003."""
    checkpoint = facts.checkpoint
    commit = checkpoint.newest_commit
    if "://" in checkpoint.location or checkpoint.committed < 0 or (commit is not None and commit.state_unique_ids):
        return
    kept = {operator for operator, _, _, held in checkpoint.inventory.each() if held.newest}
    for operator in sorted(_with_metadata(checkpoint) - kept):
        yield WithoutState(operator, checkpoint.committed)


def _with_metadata(checkpoint: CheckpointSeen) -> set[int]:
    folders = ((_METADATA.fullmatch(path), names) for path, names in checkpoint.folders.items())
    return {int(match[1]) for match, names in folders if match is not None and names}


CHECK = Check(
    "SW-STORE-006",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="operator {it.operator} has metadata on this disk and no state, although batch {it.committed} is committed: "
    "executors may have written the state to their own disks",
    risk="stuck",
    goal="rebuild",
    certainty="likely",
    where="{facts.checkpoint.location}/state/{it.operator}",
    expected="state of batch {it.committed}",
    found="nothing",
    next=rebuild,
    advice="look for state/{it.operator} under the same path on the machines of the executors, and use a checkpoint "
    "location that all machines reach",
)
