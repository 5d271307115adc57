"""The newest entry of commits/ cannot be parsed.

What it finds: the newest entry of `commits/`, which a start reads, is empty, cut or malformed.
Why it matters: Spark refuses to start, at every start. The entry has the watermark of the next batch, and with
checkpoint format 2 the ids of the state.
How to confirm: `slackwater inspect STREAM` lists the damage; read the file.
What to do: `slackwater plan resume STREAM` writes the entry again from the ledger's copy. Without a ledger, restore
it from a copy of the checkpoint.
Is the remedy safe: yes; the copy is what Spark wrote. To delete the entry runs its batch again with the recorded
range: a sink that skips a batch that it has is right then, every other sink gets the rows twice.
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
    """Damage of the newest entry, other than a version that is too new or a number that is no batch."""
    checkpoint = facts.checkpoint
    batch = checkpoint.committed
    damage = checkpoint.damaged(f"commits/{batch}")
    if damage is None or damage.kind not in UNPARSED or ("commits", batch) in strays_in_logs(checkpoint):
        return
    yield Unparsed(batch, damage.kind, damage.expected, damage.found, _how(facts, batch))


def _how(facts: Facts, batch: int) -> str:
    checkpoint, snapshot = facts.checkpoint, facts.snapshot
    restored = f"restore commits/{batch} from a copy of the checkpoint"
    has_it = snapshot.marks.written == batch == checkpoint.planned and snapshot.output.batches_skipped
    if has_it and not snapshot.stateful:
        # The batch runs again with its range, and the output drops its rows.
        away = move_away(checkpoint, f"commits/{batch}")
        return f"{restored}; or, as the output skips batch {batch}, which it has: {away}"
    return restored


CHECK = Check(
    "SW-LOG-005",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the entry of batch {it.batch} in commits/ is {it.kind}: a start reads it, and is refused",
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}/commits/{it.batch}",
    expected="{it.expected}",
    found="{it.found}",
    next=resume,
    advice="{it.how}",
    also=("LOG-03",),
    damage=lambda it: (f"commits/{it.batch}",),
)
