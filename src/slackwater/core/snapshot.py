"""A stream at one time: the input of the number line, of the checks before a start, of plans and of the status page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from slackwater.core.checkpoint import Damage, OffsetEntry, UnreadState
from slackwater.core.errors import Aside
from slackwater.core.marks import NONE_YET, Marks
from slackwater.core.profile import QueryProfile
from slackwater.core.records import GenerationRecord, OperationRecord, RunRecord, StreamRecord
from slackwater.core.sink import Delivery

HomePlace = Literal["here", "moved", "copied"]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that could not be read, and why. ``aside`` as of ``SinkUnreadable``."""

    code: str
    text: str
    where: str | None = None
    expected: str | None = None
    found: str | None = None
    hint: str | None = None
    aside: Aside | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the ledger held before anything was copied into it. Batch ids; -1 for none.

    ``planned`` and ``committed`` are the newest recorded entries of the two logs, ``shown`` the newest batch that the
    sink was ever seen to show, ``next_entry`` the recorded range of the batch that Spark would run next.
    """

    planned: int = NONE_YET
    committed: int = NONE_YET
    shown: int = NONE_YET
    next_entry: OffsetEntry | None = None


@dataclass(frozen=True, slots=True)
class MemberSeen:
    """One of the outputs that a batch is written into. ``written`` is its newest batch, ``None`` if it shows none."""

    kind: str
    location: str | None
    written: int | None
    batches_skipped: bool
    can_cut: bool
    delivery: Delivery | None

    @property
    def name(self) -> str:
        """Its kind and place, in a sentence."""
        return f"{self.kind} {self.location}" if self.location is not None else self.kind


@dataclass(frozen=True, slots=True)
class Unmarked:
    """An output with rows of batches that its marker does not show: it was lost, or restored from an older copy.

    ``marked`` is the batch that the marker shows, ``finished`` the newest that was committed. ``emptied`` is how a
    person empties the output, ``shows_rows`` whether that can be seen then, and ``replaceable`` whether a swap
    can replace all rows.
    """

    location: str | None
    marked: int
    finished: int
    emptied: str
    shows_rows: bool
    replaceable: bool = False


@dataclass(frozen=True, slots=True)
class OutputSeen:
    """The output: where it is, whose it is, what it promises, and what is wrong with it.

    ``owner`` is the id of the stream that the output names as its writer, ``owner_name`` that stream's name and home.
    ``batches_skipped``: the sink drops a batch whose id it has already; ``skipped_are_read``: Spark runs it all the
    same, without output. ``can_cut``: a plan may cut it. ``delivery`` is what the sink guarantees.
    ``orphans`` are data files of interrupted batches, which belong to no batch; looked for by a thorough snapshot only.
    ``members`` are the outputs where a batch is written into several, else empty. ``unmarked`` is the first of the
    outputs whose marker was lost while it may have rows. ``unchecked`` is why an output that would show its newest
    batch was not looked at.
    """

    location: str | None = None
    owner: str | None = None
    owner_name: str | None = None
    batches_skipped: bool = False
    skipped_are_read: bool = False
    can_cut: bool = False
    delivery: Delivery | None = None
    unreadable: Unreadable | None = None
    damage: tuple[Damage, ...] = ()
    orphans: tuple[str, ...] = ()
    members: tuple[MemberSeen, ...] = ()
    unmarked: Unmarked | None = None
    unchecked: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stream as it was found. ``holder`` names what holds the lease (``run``, ``apply rebuild``), else ``None``.

    ``planned_entry`` is the entry in ``offsets/`` of the next batch, where that is planned. ``damage`` is what is wrong
    with the checkpoint; ``unread_state`` is state that was not read for it, known to ``doctor`` only.
    ``missing_files`` are source files that the planned next batch needs and that do not exist.
    ``last_refusal`` is the last start, if it was refused: no run has started since.
    ``home`` is whether the home is at the place where it was created. ``code_file`` is the pipeline file with the
    query, also of one that is only watched; empty where none is known. ``by_run``: a run starts the query now, also
    that of an application. ``inputs_recorded`` are the batches after which the watermark of each input is recorded, of
    a query that has several.
    """

    stream: StreamRecord
    generation: GenerationRecord
    marks: Marks
    recorded: Recorded = field(default_factory=Recorded)
    output: OutputSeen = field(default_factory=OutputSeen)
    profile: QueryProfile | None = None
    planned_entry: OffsetEntry | None = None
    damage: tuple[Damage, ...] = ()
    unread_state: UnreadState = field(default_factory=UnreadState)
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
        """The number of each source's own log, by its position; empty where the query is not recorded."""
        return self.profile.logs_of_sources if self.profile is not None else {}

    @property
    def checkpoint_present(self) -> bool:
        """Whether the checkpoint holds any batch."""
        return self.marks.planned >= 0

    @property
    def outputs(self) -> tuple[MemberSeen, ...]:
        """The outputs that a batch is written into: one, or several."""
        seen = self.output
        kind = self.stream.sink.get("kind") or "unknown"
        one = MemberSeen(kind, seen.location, self.marks.written, seen.batches_skipped, seen.can_cut, seen.delivery)
        return seen.members or (one,)

    @property
    def shown(self) -> tuple[int, ...]:
        """The newest batch of each output that shows it."""
        return tuple(one.written for one in self.outputs if one.written is not None)

    @property
    def known_committed(self) -> int:
        """The newest batch that the checkpoint or the ledger has as committed."""
        return max(self.marks.committed, self.recorded.committed)

    @property
    def written_or_committed(self) -> int:
        """The newest batch that all outputs show; of one that shows none, the newest known to be committed."""
        committed: tuple[int, ...] = (self.known_committed,) if self.marks.written is None else ()
        return max(min(self.shown + committed), self.generation.floor)

    def forgets_inputs(self, batch: int, profile: QueryProfile | None) -> bool:
        """Whether a start after ``batch`` has only the combined watermark of a query with several."""
        several = profile is not None and len(profile.watermark_delays_ms) > 1
        return several and batch > self.generation.floor and batch not in self.inputs_recorded

    @property
    def stateful(self) -> bool:
        """Whether the query keeps state, as far as its checkpoint, its recorded plan, or its recorded stores show."""
        if self.marks.state is not None:
            return True
        # Without a run only the stores that a checkpoint had when it was adopted are recorded.
        recorded = bool((self.generation.layout or {}).get("state_stores"))
        return self.profile.stateful if self.profile is not None else recorded

    @property
    def can_swap_unmarked(self) -> bool:
        """Whether a reset with a swap can replace all rows of an output whose marker was lost."""
        unmarked = self.output.unmarked
        return unmarked is not None and unmarked.replaceable and not self.stream.is_watched

    @property
    def _restarts_itself(self) -> bool:
        """Whether the user's program starts the query, and not a run."""
        return self.stream.is_watched and not self.by_run

    @property
    def skips_unread(self) -> bool:
        """Whether a batch that the sink has is skipped without a look at its rows, which may move the watermark.

        Only a query that no run starts is restarted that way (``completed_batch``). Without a recorded plan
        nothing shows that a query with state has no watermark.
        """
        watermarked = self.profile is None or bool(self.profile.watermark_delays_ms)
        return self._restarts_itself and self.stateful and watermarked and not self.output.skipped_are_read

    @property
    def misses_watermark(self) -> bool:
        """Whether the next start skips such a batch."""
        marks = self.marks
        return self.skips_unread and marks.next_is_planned and marks.written == marks.next_batch

    @property
    def completed_batch(self) -> int | None:
        """The next batch if the sink has it and would skip it unread: a run first completes it, without output.

        State, watermark and commit are then those of an uninterrupted run, and the sink keeps what it has.
        """
        marks, output = self.marks, self.output
        skipped = output.batches_skipped and not output.skipped_are_read and marks.written == marks.next_batch
        if self._restarts_itself or not self.stateful or not marks.next_is_planned or not skipped:
            return None
        return marks.next_batch
