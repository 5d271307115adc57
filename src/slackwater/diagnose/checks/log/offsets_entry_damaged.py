"""One of the two newest entries of offsets/ cannot be parsed.

What it finds: one of the two entries of `offsets/` that a start reads is empty, cut or malformed.
Why it matters: Spark refuses to start, at every start. The range of the batch is in no other file.
How to confirm: `slackwater inspect STREAM` lists the damage; read the file.
What to do: `slackwater plan resume STREAM` writes the entry again from the ledger's copy. Without a ledger, restore
it from a copy of the checkpoint.
Is the remedy safe: yes; the copy is what Spark wrote. To delete the entry is safe only if its batch has neither a
commit nor rows in the output: of a committed batch that leaves commits/ ahead (SW-LOG-007), and a range that is
planned again may differ from what a sink has in part.
References: Structured Streaming Programming Guide, Recovering from Failures with Checkpointing
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import move_away, resume
from slackwater.diagnose.checks.common.logs import UNPARSED, Unparsed, strays_in_logs


def find(facts: Facts) -> Iterator[Unparsed]:
    """Damage of the two newest entries, other than a version that is too new or a number that is no batch."""
    checkpoint = facts.checkpoint
    strays = {number for folder, number in strays_in_logs(checkpoint) if folder == "offsets"}
    for batch in checkpoint.offset_ids[-2:]:
        damage = checkpoint.damaged(f"offsets/{batch}")
        if damage is not None and damage.kind in UNPARSED and batch not in strays:
            yield Unparsed(batch, damage.kind, damage.expected, damage.found, _how(facts, batch))


def _how(facts: Facts, batch: int) -> str:
    checkpoint, written = facts.checkpoint, facts.marks.written
    restored = f"restore offsets/{batch} from a copy of the checkpoint"
    if batch == checkpoint.planned == checkpoint.committed + 1 and written is not None and written < batch:
        # Neither a commit nor an output of it: nothing depends on the range, and Spark plans another.
        return (
            f"{restored}; or, as the output has no rows of batch {batch}: {move_away(checkpoint, f'offsets/{batch}')}"
        )
    return restored


CHECK = Check(
    "SW-LOG-001",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the entry of batch {it.batch} in offsets/ is {it.kind}: a start reads it, and is refused",
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="{it.expected}",
    found="{it.found}",
    next=resume,
    advice="{it.how}",
    also=("LOG-02", "LOG-03"),
    damage=lambda it: (f"offsets/{it.batch}",),
)
