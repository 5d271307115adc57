"""Finds the first contributing batch: the first one whose rows still matter for output after the target batch.

A batch that is chosen too late silently loses rows of open windows. So every step that is not known counts as
contributing, and the watermark compared with is the one *of* the target batch, not the one after it: rows that are
emitted only in the batch after the target are still in its state. Recorded event times and watermarks were taken
behind the filters of the code that ran: a batch that ran with code that reads other rows than the present code does
counts as unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slackwater.core.errors import Refused
from slackwater.core.records import RunRecord
from slackwater.ledger.recording.batch_history import BatchHistory


@dataclass(frozen=True, slots=True)
class StateBounds:
    """What is known of a query's state: how far behind the watermark rows matter, and the delay of its one watermark.

    ``retention_ms`` ``None``: unknown, so all batches contribute. ``delay_ms`` ``None``: unknown or several.
    ``any_row_order``: state of the user's own functions is recomputed, as the user says that they give the same for any
    order of the rows in a batch.
    ``several``: the query has several watermarks, and what a batch reports of its event times is of one of them.
    """

    stateful: bool
    retention_ms: int | None
    delay_ms: int | None
    any_row_order: bool = False
    several: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """The code that will replay: the SHA-256 of its files, and the digest of the part of its query that reads the rows.

    The files are that of the pipeline and the modules of the project that it imports. ``rows_digest`` ``None``:
    unknown, so that evidence from other files does not count. ``spark_version`` is empty where Spark was not started.
    """

    digest: str
    rows_digest: str | None = None
    spark_version: str = ""

    def reads_as(self, run: RunRecord | None) -> bool:
        """Whether a run read the rows that this code reads, as far as is known."""
        if run is None or run.code is None:
            return False
        if run.code == self.digest:
            return True
        return self.rows_digest is not None and run.rows_digest == self.rows_digest

    def counts_as(self, run: RunRecord | None) -> bool:
        """Whether the rows that Spark counted in a run's batches can be compared with those that it counts now.

        It counts them behind the filters that it pushes into a source, and its versions do not push the same.
        """
        return run is not None and self.reads_as(run) and _minor(run.spark_version) == _minor(self.spark_version)


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def first_contributing(history: BatchHistory, target: int, state: StateBounds, code: Code) -> int:
    """The first batch to be replayed; ``target + 1`` for a query without state, which needs none.

    With state the target itself is always replayed: Spark needs the entries of two batches in a checkpoint.
    Raises Refused (``history-short``) where a batch that may contribute is not recorded.
    """
    begins = history.history.begins
    if target < begins:
        return target + 1
    first = max(min(_first_reaching(history, target, state, code), target), begins) if state.stateful else target
    # From the newest one back, so that the search ends at the first gap, however large ids are.
    needed = range(target, max(first - 1, 0) - 1, -1)
    gap = next((batch for batch in needed if batch not in history.history.offsets), None)
    if gap is not None:
        raise Refused(
            "history-short",
            f"Batches before {history.batches[0]} may still matter for the state at batch {target}, and their ranges "
            "are recorded neither in the checkpoint nor in the ledger",
            expected=f"offsets of batches {max(first - 1, 0)}..{target}",
            found=f"no record of batch {gap}",
            hint="restore the ledger or the checkpoint from a backup; or give the stream a new name and a new output",
        )
    return first if state.stateful else target + 1


def _first_reaching(history: BatchHistory, target: int, state: StateBounds, code: Code) -> int:
    watermark = history.offset(target).watermark_ms
    begins = history.history.begins
    if state.retention_ms is None or watermark <= 0:
        return begins
    threshold = watermark - state.retention_ms
    newest = _newest_event_time_of(history, state, code)
    offsets, skipped = history.history.offsets, history.history.skipped
    for batch in sorted(batch for batch in offsets.keys() | skipped if begins <= batch <= target):
        if batch not in offsets:
            return begins
        # Unrecorded batches are passed only if a later one proves that none of them reached the threshold.
        seen = newest(batch)
        if seen is None or seen >= threshold:
            return _earliest_unproven(history, batch, threshold, state.delay_ms, code)
    return target + 1


def _newest_event_time_of(history: BatchHistory, state: StateBounds, code: Code) -> Callable[[int], int | None]:
    def look(batch: int) -> int | None:
        if not code.reads_as(history.history.runs.get(batch)):
            return None
        if state.several:
            skipped = batch in history.history.skipped
            return None if skipped else history.history.newest_of_inputs_ms.get(batch)
        return newest_event_time(history, batch, state.delay_ms)

    return look


def _earliest_unproven(history: BatchHistory, reaching: int, threshold: int, delay_ms: int | None, code: Code) -> int:
    """``reaching``, if the batch before it is recorded; else the first, unless its own start proves that too old."""
    begins = history.history.begins
    if reaching == begins or reaching - 1 in history.history.offsets:
        return reaching
    before = history.offset(reaching).watermark_ms
    same_code = all(code.reads_as(history.history.runs.get(batch)) for batch in range(begins, reaching))
    proven = same_code and delay_ms is not None and before > 0 and before + delay_ms < threshold
    return reaching if proven else begins


def newest_event_time(history: BatchHistory, batch: int, delay_ms: int | None) -> int | None:
    """The newest event time seen up to the end of a batch, in epoch milliseconds; ``None`` where it is not recorded.

    Spark's watermark after a batch is that time less the delay; a progress event has the batch's own newest time.
    """
    recorded: list[int] = []
    if batch in history.history.event_time_max_ms:
        recorded.append(history.history.event_time_max_ms[batch])
    elif batch in history.history.skipped:
        # Spark did not read its rows when it ran it again: they advanced no watermark.
        return None
    commit = history.commit(batch)
    if delay_ms is not None and commit is not None and commit.next_batch_watermark_ms > 0:
        recorded.append(commit.next_batch_watermark_ms + delay_ms)
    after = history.offset(batch + 1).watermark_ms if batch + 1 in history.history.offsets else 0
    if delay_ms is not None and after > 0:
        recorded.append(after + delay_ms)
    return max(recorded, default=None)
