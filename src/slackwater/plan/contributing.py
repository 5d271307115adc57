"""Finds the first contributing batch: the first one whose rows still matter for output after the target batch.

Here lies silent loss: a batch too late and rows of open windows are gone. So every step that is not known counts as
contributing, and the watermark compared with is the one *of* the target batch, not the one after it: rows that are
emitted only in the batch after the target are still in its state.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.errors import Refused
from slackwater.plan.past import Past


@dataclass(frozen=True, slots=True)
class StatePast:
    """What is known of a query's state: how far behind the watermark rows matter, and the delay of its one watermark.

    ``retention_ms`` ``None``: cannot be told, so all batches contribute. ``delay_ms`` ``None``: unknown or several.
    """

    stateful: bool
    retention_ms: int | None
    delay_ms: int | None


def first_contributing(past: Past, target: int, state: StatePast) -> int:
    """The first batch to be replayed; ``target + 1`` for a query without state, which needs none.

    With state the target itself is always replayed: Spark wants the entries of two batches in a checkpoint.
    Raises Refused (``history-short``) where a batch that may contribute is recorded nowhere.
    """
    first = min(_first_reaching(past, target, state), target) if state.stateful else target
    gaps = [batch for batch in range(max(first - 1, 0), target + 1) if batch not in past.history.offsets]
    if gaps:
        raise Refused(
            "history-short",
            f"Batches before {past.batches[0]} may still matter for the state at batch {target}, and their ranges are "
            "recorded neither in the checkpoint nor in the ledger",
            expected=f"offsets of batches {max(first - 1, 0)}..{target}",
            found=f"no record of batch {gaps[-1]}",
            hint="only a reset can begin again from here",
        )
    return first if state.stateful else target + 1


def _first_reaching(past: Past, target: int, state: StatePast) -> int:
    watermark = past.offset(target).watermark_ms
    if state.retention_ms is None or watermark <= 0:
        return 0
    threshold = watermark - state.retention_ms
    for batch in range(target + 1):
        if batch not in past.history.offsets:
            if batch in past.history.skipped:
                return 0
            # Unrecorded batches are passed only if a later one proves that none of them reached the threshold.
            continue
        seen = newest_event_time(past, batch, state.delay_ms)
        if seen is None or seen >= threshold:
            return _earliest_unproven(past, batch, threshold, state.delay_ms)
    return target + 1


def _earliest_unproven(past: Past, reaching: int, threshold: int, delay_ms: int | None) -> int:
    """``reaching``, if the batch before it is recorded; else 0, unless its own start proves the earlier too old."""
    if reaching == 0 or reaching - 1 in past.history.offsets:
        return reaching
    before = past.offset(reaching).watermark_ms
    proven = delay_ms is not None and before > 0 and before + delay_ms < threshold
    return reaching if proven else 0


def newest_event_time(past: Past, batch: int, delay_ms: int | None) -> int | None:
    """The newest event time seen up to the end of a batch, in epoch milliseconds; ``None`` where nothing tells it.

    Spark's watermark after a batch is that time less the delay; a progress event tells the batch's own newest time.
    """
    told: list[int] = []
    if batch in past.history.event_time_max_ms:
        told.append(past.history.event_time_max_ms[batch])
    elif batch in past.history.skipped:
        # Spark did not look at its rows when it ran it again: no watermark has heard of them.
        return None
    commit = past.commit(batch)
    if delay_ms is not None and commit is not None and commit.next_batch_watermark_ms > 0:
        told.append(commit.next_batch_watermark_ms + delay_ms)
    after = past.offset(batch + 1).watermark_ms if batch + 1 in past.history.offsets else 0
    if delay_ms is not None and after > 0:
        told.append(after + delay_ms)
    return max(told, default=None)
