"""Finds the first contributing batch: the first one whose rows still matter for output after the target batch.

A batch that is chosen too late silently loses rows of open windows. So every step that is not known counts as
contributing, and the watermark compared with is the one *of* the target batch, not the one after it: rows that are
emitted only in the batch after the target are still in its state. Recorded event times and watermarks were taken
behind the filters of the code that ran: a batch that ran with code that reads other rows than the present code does
counts as unknown.

A session has no fixed length. Rows of two batches can only be in one session if their event times, or those of rows
between them, are no further apart than the gap; so the search goes back from the watermark to a pause between batches
in which no row that Spark accepted is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.core.errors import Refused
from slackwater.core.records import RunRecord
from slackwater.ledger.recording.batch_history import BatchHistory

MERGE = "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition"


@dataclass(frozen=True, slots=True)
class StateBounds:
    """What is known of a query's state: how far behind the watermark rows matter, and the delay of its one watermark.

    ``retention_ms`` ``None``: unknown, so all batches contribute. ``delay_ms`` ``None``: unknown or several.
    ``any_row_order``: state of the user's own functions is recomputed, as the user says that they give the same for any
    order of the rows in a batch.
    ``several``: the query has several watermarks, and what a batch reports of its event times is of one of them.
    ``window_starts_ms``: the state is windows of the length ``retention_ms``, of which each starts so many milliseconds
    after the one before, and one at the second number after the epoch.
    ``session_gap_ms``: the state is sessions that end after this gap, whose ``retention_ms`` is therefore unknown.
    """

    stateful: bool
    retention_ms: int | None
    delay_ms: int | None
    any_row_order: bool = False
    several: bool = False
    session_gap_ms: int | None = None
    window_starts_ms: tuple[int, int] | None = None

    def oldest_kept_ms(self, watermark_ms: int, retention_ms: int) -> int:
        """The oldest event time that matters: of windows the start of the first one that ends after the watermark."""
        if self.window_starts_ms is None:
            return watermark_ms - retention_ms
        slide, start = self.window_starts_ms
        return (watermark_ms - retention_ms - start) // slide * slide + slide + start


@dataclass(frozen=True, slots=True)
class Code:
    """The code that will replay: the SHA-256 of its files, and the digest of the part of its query that reads the rows.

    The files are that of the pipeline and the modules of the project that it imports; a query may read settings from
    others. ``rows_digest`` is of a plan that ``spark_version`` optimised, and is compared with those of the same minor
    release. Where there is none to compare (``None``: unknown), equal files are the evidence, unless ``programs`` shows
    otherwise: by the digest of each program that was compared with the present one, whether it reads the same rows
    (``None``: no comparison was made). A run of another release whose program is not among them is no evidence.
    """

    digest: str
    rows_digest: str | None = None
    spark_version: str = ""
    programs: Mapping[str, bool] | None = None

    def reads_as(self, run: RunRecord | None) -> bool:
        """Whether a run read the rows that this code reads, as far as is known."""
        if run is None or run.code is None:
            return False
        if self.rows_digest is not None and run.rows_digest is not None and self._has_release_of(run):
            return run.rows_digest == self.rows_digest
        return run.code == self.digest and self._has_rows_of(run)

    def counts_as(self, run: RunRecord | None) -> bool:
        """Whether the rows that Spark counted in a run's batches can be compared with those that it counts now.

        It counts them behind the filters that it pushes into a source, and its versions do not push the same.
        """
        return run is not None and self.reads_as(run) and self._has_release_of(run)

    def _has_rows_of(self, run: RunRecord) -> bool:
        if run.program is None or self.programs is None:
            return True
        # The ledger keeps only the newest programs of a generation: which rows an older one read is unknown.
        return self.programs.get(run.program, self._has_release_of(run))

    def _has_release_of(self, run: RunRecord) -> bool:
        return minor_release(run.spark_version) == minor_release(self.spark_version)


def minor_release(version: str) -> str:
    """The minor release of a version of Spark: 4.1 of 4.1.3."""
    return ".".join(version.split(".")[:2])


def first_contributing(history: BatchHistory, target: int, state: StateBounds, code: Code) -> int:
    """The first batch to be replayed; ``target + 1`` for a query without state, which needs none.

    With state the target itself is always replayed: Spark needs the entries of two batches in a checkpoint.
    Raises Refused (``history-short``) where a batch that may contribute is not recorded.
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


@dataclass(frozen=True, slots=True)
class _Search:
    """The search of ``first_contributing`` for a query with state."""

    history: BatchHistory
    target: int
    state: StateBounds
    code: Code

    def first(self) -> int:
        """The first batch that may contribute; ``target + 1`` where none does."""
        watermark = self.history.offset(self.target).watermark_ms
        if watermark > 0 and self.state.retention_ms is not None:
            return self._first_since(self.state.oldest_kept_ms(watermark, self.state.retention_ms))
        if watermark > 0 and self.state.session_gap_ms is not None and not self.state.several:
            return self._first_of_sessions(watermark, self.state.session_gap_ms)
        return self.history.history.begins

    def _first_since(self, threshold: int) -> int:
        """The first batch with a row at the threshold or later, as far as those before are proven to have none."""
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
        """The first batch with a row that can be in a session that is open at the target, through any rows between.

        A session is open whose newest row is less than the gap behind the watermark. From there the threshold goes back
        to the oldest accepted row of the batches that reach it, less the gap, until none of these is older. Then all
        rows of earlier batches are further from each of them than the gap.
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
        """A time before which no row of a batch is in a session, ``None`` where none is known.

        Spark reports the oldest event time of a batch, and drops a row whose own session ends at the watermark of the
        batch before. With ``MERGE`` it joins rows of a batch before it drops any: then the watermark bounds nothing.
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
        """The newest event time up to the end of a batch, ``None`` where it is unknown."""
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
    """The newest event time seen up to the end of a batch, in epoch milliseconds; ``None`` where it is not recorded.

    Spark's watermark after a batch is that time less the delay; a progress event has the batch's own newest time.
    """
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
