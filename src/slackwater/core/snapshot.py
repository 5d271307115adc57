"""A stream at a point in time: input of the number line, checks, plans and status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from slackwater.core.checkpoint import NONE_YET, Damage, Marks, OffsetEntry, UnreadState
from slackwater.core.errors import SinkUnreadable
from slackwater.core.program import QueryProfile
from slackwater.core.records import GenerationRecord, OperationRecord, RunRecord, StreamRecord
from slackwater.core.sink import Delivery

HomePlace = Literal["here", "moved", "copied"]


class Recorded(NamedTuple):
    """The ledger before anything was copied into it. ``planned`` and ``committed`` are newest entries, ``shown`` the
    newest batch that the sink ever showed, ``next_entry`` the recorded range of the next batch. -1: none.
    """

    planned: int = NONE_YET
    committed: int = NONE_YET
    shown: int = NONE_YET
    next_entry: OffsetEntry | None = None


class Unmarked(NamedTuple):
    """An output with rows that its lost or older marker does not show.

    The marker shows batch ``marked``; ``finished`` was the newest committed. ``emptied``: how a person empties it;
    ``shows_rows``: whether that can be seen; ``replaceable``: a swap can replace all rows.
    """

    location: str | None
    marked: int
    finished: int
    emptied: str
    shows_rows: bool
    replaceable: bool = False


class OutputSeen(NamedTuple):
    """``owner`` is the id of the stream that the output names as its writer, ``owner_name`` the stream's name and home.
    ``batches_skipped``: it drops a batch whose id it has; ``skipped_are_read``: Spark runs that batch without output.
    ``orphans`` are data files of interrupted batches, found by a thorough snapshot only. ``unmarked`` is the first
    without its marker that may have rows. ``unchecked``: why its newest batch was not looked up. ``members`` are seen
    separately if there are several outputs; only members have ``kind`` and ``written``, the newest batch, if any.
    """

    location: str | None = None
    owner: str | None = None
    owner_name: str | None = None
    batches_skipped: bool = False
    skipped_are_read: bool = False
    can_cut: bool = False
    delivery: Delivery | None = None
    unreadable: SinkUnreadable | None = None
    damage: tuple[Damage, ...] = ()
    orphans: tuple[str, ...] = ()
    members: tuple[OutputSeen, ...] = ()
    unmarked: Unmarked | None = None
    unchecked: str = ""
    kind: str = "unknown"
    written: int | None = None

    @property
    def name(self) -> str:
        return f"{self.kind} {self.location}" if self.location is not None else self.kind


class Snapshot(NamedTuple):
    """``holder`` names the lease's holder (``run``, ``apply rebuild``).

    ``planned_entry`` is the planned next batch in ``offsets/``. ``unread_state`` was not read for ``damage``; only
    ``doctor`` has it. ``missing_files`` are needed by the planned batch. ``last_refusal`` is the last start, if
    refused. ``home``: whether the home was moved or copied. ``code_file`` has the query, also a watched query.
    ``by_run``: a run starts the query now, also an application's. ``inputs_recorded`` are batches whose watermarks of
    several inputs are recorded.
    """

    stream: StreamRecord
    generation: GenerationRecord
    marks: Marks
    recorded: Recorded = Recorded()
    output: OutputSeen = OutputSeen()
    profile: QueryProfile | None = None
    planned_entry: OffsetEntry | None = None
    damage: tuple[Damage, ...] = ()
    unread_state: UnreadState = UnreadState()
    missing_files: tuple[str, ...] = ()
    operation: OperationRecord | None = None
    holder: str | None = None
    last_run: RunRecord | None = None
    last_refusal: RunRecord | None = None
    home: HomePlace = "here"
    home_was: str | None = None
    code_file: str = ""
    by_run: bool = False
    inputs_recorded: frozenset[int] = frozenset()

    @property
    def source_logs(self) -> Mapping[str, str]:
        """Log numbers by position of the source; empty for an unrecorded query."""
        return self.profile.logs_of_sources if self.profile is not None else {}

    @property
    def checkpoint_present(self) -> bool:
        return self.marks.planned >= 0

    @property
    def outputs(self) -> tuple[OutputSeen, ...]:
        kind = self.stream.sink.get("kind") or "unknown"
        return self.output.members or (self.output._replace(kind=kind, written=self.marks.written),)

    @property
    def shown(self) -> tuple[int, ...]:
        return tuple(one.written for one in self.outputs if one.written is not None)

    @property
    def known_committed(self) -> int:
        return max(self.marks.committed, self.recorded.committed)

    @property
    def written_or_committed(self) -> int:
        committed: tuple[int, ...] = (self.known_committed,) if self.marks.written is None else ()
        return max(min(self.shown + committed), self.generation.floor)

    def forgets_inputs(self, batch: int, profile: QueryProfile | None) -> bool:
        """Whether a start after ``batch`` has only the combined watermark of several."""
        several = profile is not None and len(profile.watermark_delays_ms) > 1
        return several and batch > self.generation.floor and batch not in self.inputs_recorded

    @property
    def stateful(self) -> bool:
        """Whether checkpoint, recorded plan, or recorded stores show state."""
        if self.marks.state is not None:
            return True
        # Without a run only the stores that a checkpoint had at first are recorded.
        recorded = bool((self.generation.layout or {}).get("state_stores"))
        return self.profile.stateful if self.profile is not None else recorded

    @property
    def can_swap_unmarked(self) -> bool:
        unmarked = self.output.unmarked
        return unmarked is not None and unmarked.replaceable and not self.stream.is_watched

    @property
    def _restarts_itself(self) -> bool:
        return self.stream.is_watched and not self.by_run

    @property
    def skips_unread(self) -> bool:
        """Whether the sink skips a known batch without reading its rows, which may move the watermark.

        Only a query that no run starts restarts so (``completed_batch``). Without a recorded plan a stateful query may
        have a watermark.
        """
        watermarked = self.profile is None or bool(self.profile.watermark_delays_ms)
        return self._restarts_itself and self.stateful and watermarked and not self.output.skipped_are_read

    @property
    def misses_watermark(self) -> bool:
        marks = self.marks
        return self.skips_unread and marks.next_is_planned and marks.written == marks.next_batch

    @property
    def completed_batch(self) -> int | None:
        """The next batch if the sink has it and would skip it unread: a run completes it without output, with the
        state, watermark and commit of an uninterrupted run.
        """
        marks, output = self.marks, self.output
        skipped = output.batches_skipped and not output.skipped_are_read and marks.written == marks.next_batch
        if self._restarts_itself or not self.stateful or not marks.next_is_planned or not skipped:
            return None
        return marks.next_batch
