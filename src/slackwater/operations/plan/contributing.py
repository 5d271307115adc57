"""Finds the first batch whose rows matter for output after the target batch.

A batch chosen too late silently loses rows of open windows, so anything unknown counts as contributing. The watermark
compared is the target's own: rows emitted only in the next batch are still in its state. Recorded event times and
watermarks come from behind the filters of the code that ran: a batch of code that reads other rows counts as unknown.

Sessions have no fixed length. The search goes back from the watermark to a pause between batches without an accepted
row, because two batches share a session only if no gap lies between their rows.
"""

from collections.abc import Mapping
from typing import NamedTuple

from slackwater.core.errors import Refused
from slackwater.core.records import RunRecord
from slackwater.core.units import minor_release
from slackwater.ledger.recording.batch_history import BatchHistory

MERGE = "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition"


class StateBounds(NamedTuple):
    """``retention_ms`` ``None``: unknown, so all batches contribute. ``delay_ms`` of the watermark is ``None`` if
    unknown or several. ``any_row_order``: the user declares that functions give the same for any order of rows.
    ``several``: a batch reports the event times of a single watermark. ``window_starts_ms``: windows of length
    ``retention_ms`` start at this interval, aligned to the second number after the epoch. ``session_gap_ms``: sessions
    end after this gap, so ``retention_ms`` is unknown.
    """

    stateful: bool
    retention_ms: int | None
    delay_ms: int | None
    any_row_order: bool = False
    several: bool = False
    session_gap_ms: int | None = None
    window_starts_ms: tuple[int, int] | None = None

    def oldest_kept_ms(self, watermark_ms: int, retention_ms: int) -> int:
        """The oldest event time kept: of windows, the start of the first that ends after the watermark."""
        if self.window_starts_ms is None:
            return watermark_ms - retention_ms
        slide, start = self.window_starts_ms
        return (watermark_ms - retention_ms - start) // slide * slide + slide + start


class Code(NamedTuple):
    """The code that will replay. Files, by SHA-256, are the pipeline and the project's modules; a query may read
    settings from others.

    ``rows_digest``, of the part that reads rows, is comparable within a minor release, as ``spark_version`` optimised
    the plan. Without comparable digests equal files are the evidence, unless ``programs``, by digest, show whether a
    compared program reads the same rows (``None``: nothing was compared). A run of another release without a compared
    program is no evidence.
    """

    digest: str
    rows_digest: str | None = None
    spark_version: str = ""
    programs: Mapping[str, bool] | None = None

    def reads_as(self, run: RunRecord | None) -> bool:
        if run is None or run.code is None:
            return False
        if self.rows_digest is not None and run.rows_digest is not None and self._has_release_of(run):
            return run.rows_digest == self.rows_digest
        if run.code != self.digest or run.program is None or self.programs is None:
            return run.code == self.digest
        # The ledger keeps only the newest programs of a generation: which rows an older one read is unknown.
        return self.programs.get(run.program, self._has_release_of(run))

    def counts_as(self, run: RunRecord | None) -> bool:
        """Whether a run's counts can be compared: pushed filters differ between Spark's versions."""
        return run is not None and self.reads_as(run) and self._has_release_of(run)

    def _has_release_of(self, run: RunRecord) -> bool:
        return minor_release(run.spark_version) == minor_release(self.spark_version)


def first_contributing(history: BatchHistory, target: int, state: StateBounds, code: Code) -> int:
    """The first contributing batch; ``target + 1`` without state.

    With state the target is always replayed: Spark needs the entries of two batches. Raises Refused (``history-short``)
    if a batch that may contribute is not recorded.
    """
    begins = history.history.begins
    if target < begins:
        return target + 1
    first = max(min(_Search(history, target, state, code).first(), target), begins) if state.stateful else target
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


class _Search(NamedTuple):
    history: BatchHistory
    target: int
    state: StateBounds
    code: Code

    def first(self) -> int:
        watermark = self.history.offset(self.target).watermark_ms
        if watermark > 0 and self.state.retention_ms is not None:
            return self._first_since(self.state.oldest_kept_ms(watermark, self.state.retention_ms))
        if watermark > 0 and self.state.session_gap_ms is not None and not self.state.several:
            return self._first_of_sessions(watermark, self.state.session_gap_ms)
        return self.history.history.begins

    def _first_since(self, threshold: int) -> int:
        begins = self.history.history.begins
        offsets, skipped = self.history.history.offsets, self.history.history.skipped
        for batch in sorted(batch for batch in offsets.keys() | skipped if begins <= batch <= self.target):
            # The rows of a batch that was skipped are unknown without its range.
            if batch not in offsets:
                return begins
            # Unrecorded batches are passed only if a later one proves that none of them reached the threshold.
            seen = self._newest(batch)
            if seen is None or seen >= threshold:
                return self._earliest_unproven(batch, threshold)
        return self.target + 1

    def _first_of_sessions(self, watermark: int, gap_ms: int) -> int:
        """The first batch with a row in a session that is open at the target.

        The threshold starts at the watermark less the gap. It moves back to the oldest accepted row of batches that
        reach it, less the gap, until none is older.
        """
        threshold = watermark - gap_ms
        while True:
            first = self._first_since(threshold)
            reaching = [batch for batch in range(first, self.target + 1) if self._may_reach(batch, threshold)]
            oldest = [self._oldest_accepted(batch, gap_ms) for batch in reaching]
            known = [time for time in oldest if time is not None]
            if len(known) < len(oldest):
                return self.history.history.begins
            if min(known, default=watermark) >= threshold + gap_ms:
                return first
            threshold = min(known) - gap_ms

    def _may_reach(self, batch: int, threshold: int) -> bool:
        if batch not in self.history.history.offsets:
            return True
        seen = self._newest(batch)
        return not self.history.reads_nothing(batch) and (seen is None or seen >= threshold)

    def _oldest_accepted(self, batch: int, gap_ms: int) -> int | None:
        """A time before which no row of the batch is in a session.

        Spark reports a batch's oldest event time, and drops a row whose own session ends at the previous watermark.
        With ``MERGE`` it joins rows first, so that the watermark bounds nothing.
        """
        history = self.history.history
        known: list[int] = []
        if batch in history.event_time_min_ms and batch not in history.skipped and self._is_evidence(batch):
            known.append(history.event_time_min_ms[batch])
        before = self.history.watermark_ms(batch - 1) if batch in history.offsets else 0
        settings = self.history.settings(batch)
        if before > 0 and settings is not None and settings.get(MERGE, "false").lower() == "false":
            known.append(before - gap_ms)
        return max(known, default=None)

    def _newest(self, batch: int) -> int | None:
        if not self._is_evidence(batch):
            return None
        if self.state.several:
            history = self.history.history
            return None if batch in history.skipped else history.newest_of_inputs_ms.get(batch)
        return newest_event_time(self.history, batch, self.state.delay_ms)

    def _is_evidence(self, batch: int) -> bool:
        return self.code.reads_as(self.history.history.runs.get(batch))

    def _earliest_unproven(self, reaching: int, threshold: int) -> int:
        """``reaching``, if the batch before it is recorded; else the first, unless its start proves that too old."""
        begins, delay_ms = self.history.history.begins, self.state.delay_ms
        # The search has passed the batch before it, if that is recorded: its rows are proven to be too old.
        if reaching == begins or reaching - 1 in self.history.history.offsets:
            return reaching
        before = self.history.offset(reaching).watermark_ms
        same_code = all(self._is_evidence(batch) for batch in range(begins, reaching))
        proven = same_code and delay_ms is not None and before > 0 and before + delay_ms < threshold
        return reaching if proven else begins


def newest_event_time(history: BatchHistory, batch: int, delay_ms: int | None) -> int | None:
    """In epoch milliseconds, as recorded, or Spark's watermark after the batch plus the delay."""
    recorded: list[int] = []
    if batch in history.history.event_time_max_ms:
        recorded.append(history.history.event_time_max_ms[batch])
    elif batch in history.history.skipped:
        # Spark did not read its rows when it ran it again: they advanced no watermark.
        return None
    if delay_ms is not None:
        # The commit and the next entry both have the watermark after the batch; one of the two may not be recorded.
        after = max(history.watermark_after_ms(batch), history.watermark_ms(batch + 1))
        recorded += [after + delay_ms] if after > 0 else []
    return max(recorded, default=None)
