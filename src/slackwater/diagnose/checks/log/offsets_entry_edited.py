"""An entry of offsets/ differs from what Spark wrote there.

What it finds: one of the two newest entries of `offsets/`, of a committed batch, has the time of planning that the
ledger's copy has, and other offsets, another watermark or other pinned settings.
Why it matters: Spark believes the entry. A lower offset has rows read twice under a new batch id, which no sink
drops; a higher one leaves rows out; state of a query that keeps some does not fit any more. Spark does not report it;
`slackwater run FILE` refuses to start.
How to confirm: `slackwater ledger STREAM --batches 0..` shows the recorded ranges; `slackwater inspect STREAM` those
of the checkpoint.
What to do: `slackwater plan rebuild STREAM` builds a checkpoint from the recorded entries; or write the recorded
value into the file again. If rows are to be read again, plan that: `slackwater plan replay STREAM --from batch:5`.
Is the remedy safe: yes; the recorded entry is what Spark wrote, and fits output and state. To leave the edit is right
only if output and state were cut back to the same batch.
References: Structured Streaming Programming Guide, Recovery Semantics after Changes in a Streaming Query
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.checkpoint_logs import OffsetEntry
from slackwater.core.facts import Facts, HistoryFacts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild


class Edited(NamedTuple):
    """The batch, what of it was changed, and both values."""

    batch: int
    what: str
    recorded: str
    found: str


def find(facts: Facts) -> Iterator[Edited]:
    """Entries of committed batches, planned at the recorded time, with other content. A later time is another plan."""
    checkpoint, history = facts.checkpoint, facts.history
    if not isinstance(history, HistoryFacts):
        return
    # A start reads the two newest entries only.
    pairs = zip(checkpoint.offset_ids[:-3:-1], (checkpoint.newest_offset, checkpoint.offset_before), strict=False)
    for batch, now in pairs:
        recorded = history.offsets.get(batch)
        if now is None or recorded is None or batch > checkpoint.committed or _planned_ms(now) > _planned_ms(recorded):
            continue
        edited = _difference(batch, recorded, now)
        if edited is not None:
            yield edited


def _planned_ms(entry: OffsetEntry) -> int:
    return entry.metadata.batch_timestamp_ms if entry.metadata is not None else 0


def _difference(batch: int, recorded: OffsetEntry, now: OffsetEntry) -> Edited | None:
    """The first difference that changes what a start does."""
    ends = {one.source: one.text for one in recorded.offsets}
    for one in now.offsets:
        if ends.get(one.source) != one.text:
            return Edited(batch, f"the offset of source {one.source}", str(ends.get(one.source)), str(one.text))
    if recorded.watermark_ms != now.watermark_ms:
        return Edited(batch, "the watermark", str(recorded.watermark_ms), str(now.watermark_ms))
    before = recorded.metadata.conf if recorded.metadata is not None else {}
    after = now.metadata.conf if now.metadata is not None else {}
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    if not changed:
        return None
    return Edited(batch, f"the setting {changed[0]}", str(before.get(changed[0])), str(after.get(changed[0])))


CHECK = Check(
    "SW-LOG-011",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the entry of batch {it.batch} in offsets/ was edited: {it.what} is not what Spark wrote",
    risk="wrong",
    goal="rebuild",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="{it.recorded}, as the ledger recorded",
    found="{it.found}",
    at_stake="all rows from batch {it.batch} on",
    advice="or set {it.what} in {facts.checkpoint.location}/offsets/{it.batch} to the recorded value again, and delete "
    "the checksum .{it.batch}.crc next to it, where there is one",
    needs=("history",),
    next=rebuild,
    refuses_start=True,
)
