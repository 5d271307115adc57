"""The watermark that Spark will use for a stream's next batch: the one that ``status`` and ``offsets`` show."""

from __future__ import annotations

from slackwater.checkpoint.layout import commit_path, offset_path
from slackwater.core.checkpoint_logs import CommitEntry, OffsetEntry
from slackwater.core.errors import FormatError
from slackwater.core.snapshot import Snapshot
from slackwater.formats.commit_log import parse_commit_entry
from slackwater.formats.offset_log import parse_offset_entry
from slackwater.storage.open import open_read_store


def next_watermark_ms(planned: OffsetEntry | None, before: OffsetEntry | None, commit: CommitEntry | None) -> int:
    """Milliseconds since 1970, 0 for none. ``planned`` is the next batch's entry in ``offsets/``, where there is one.

    A planned batch runs with the watermark in its own entry. For a batch that is not planned, Spark restores the
    watermark of the batch before it and raises it to the one in that batch's commit, if that is newer
    (``MicroBatchExecution.populateStartOffsets``). A progress event has the older one of its own batch.
    """
    if planned is not None:
        return planned.watermark_ms
    return max(before.watermark_ms if before else 0, commit.next_batch_watermark_ms if commit else 0)


def watermark_of(snapshot: Snapshot) -> int:
    """The watermark of the snapshot's next batch, 0 where there is none or its entries cannot be read."""
    last = snapshot.marks.next_batch - 1
    if snapshot.planned_entry is not None or last < 0:
        return next_watermark_ms(snapshot.planned_entry, None, None)
    store = open_read_store(snapshot.generation.location)
    try:
        before = parse_offset_entry(store.read(offset_path(last)))
        commit = parse_commit_entry(store.read(commit_path(last)))
    except (OSError, FormatError):
        # The snapshot lists the damage.
        return 0
    return next_watermark_ms(None, before, commit)
