"""What a stream's number line means, in one line, and which command comes next."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.model.marks import Marks
from slackwater.model.profile import QueryProfile
from slackwater.model.records import OperationRecord, StreamRecord


@dataclass(frozen=True, slots=True)
class Seen:
    """What a verdict is made from. ``recorded`` is the newest batch whose range the ledger knows.

    ``sink_error`` says why the sink could not be asked; ``working`` names what holds the lease: ``run``, ``apply ...``.
    """

    stream: StreamRecord
    marks: Marks
    recorded: int
    sink_error: str | None = None
    profile: QueryProfile | None = None
    operation: OperationRecord | None = None
    working: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """``code`` is stable: see docs/json.md. ``next`` is a command, ``None`` where nothing has to be done."""

    code: str
    text: str
    next: str | None = None


def verdict_of(seen: Seen) -> Verdict:
    """The most urgent thing that can be said of the stream."""
    return _operation(seen) or _sink(seen) or _state(seen) or _sound(seen)


def _operation(seen: Seen) -> Verdict | None:
    left = seen.operation
    if left is None:
        return None
    if seen.working is not None and seen.working != "run":
        return Verdict("operation-running", f"operation {left.id} ({left.goal}) is under way")
    return Verdict(
        "operation-unfinished",
        f"operation {left.id} ({left.goal}) was interrupted and must be carried to its end first",
        f"slackwater apply {left.summary} --yes",
    )


def _sink(seen: Seen) -> Verdict | None:
    marks, rebuild = seen.marks, f"slackwater plan rebuild {seen.stream.full_name}"
    if seen.sink_error is not None:
        return Verdict("sink-unreadable", f"what was written last cannot be told: {seen.sink_error}")
    if marks.planned < 0 <= seen.recorded:
        return Verdict("checkpoint-lost", f"the checkpoint is gone; batches up to {seen.recorded} were run", rebuild)
    if marks.written is None:
        return None
    if marks.written > marks.next_batch:
        skipped = _batches(marks.next_batch, marks.written)
        return Verdict("sink-ahead", f"the sink is ahead: it would skip {skipped} without a word", rebuild)
    if marks.written < marks.next_batch - 1:
        missing = _batches(marks.written + 1, marks.next_batch - 1)
        return Verdict("sink-behind", f"the sink is behind: it lacks {missing}, which the checkpoint has done", rebuild)
    return None


def _state(seen: Seen) -> Verdict | None:
    marks = seen.marks
    needed = marks.next_batch - 1
    keeps_state = marks.state is not None or (seen.profile is not None and seen.profile.stateful)
    held = -1 if marks.state is None else marks.state
    if not keeps_state or needed < 0 or held >= needed:
        return None
    found = f"can be loaded up to batch {held} only" if held >= 0 else "cannot be loaded"
    return Verdict(
        "state-lost",
        f"batch {marks.next_batch} needs the state of batch {needed}, which {found}",
        f"slackwater plan rebuild {seen.stream.full_name}",
    )


def _sound(seen: Seen) -> Verdict:
    marks = seen.marks
    go_on = f"slackwater run {seen.stream.pipeline_file}" if seen.stream.pipeline_file else None
    if seen.working is not None:
        return Verdict("running", "running" if seen.working == "run" else f"clean, and {seen.working} is under way")
    if marks.planned < 0:
        return Verdict("new", "no batch has been planned yet", go_on)
    if marks.written == marks.next_batch:
        return Verdict("commit-missing", _skipped(seen), go_on)
    if marks.written is None:
        return Verdict("sink-silent", "the checkpoint is in order; this sink cannot say what it holds", go_on)
    if marks.committed < marks.planned:
        return Verdict("clean", f"clean: batch {marks.planned} was begun and is run again", go_on)
    return Verdict("clean", "clean: checkpoint and sink agree", go_on)


def _skipped(seen: Seen) -> str:
    written = seen.marks.written
    text = (
        f"the sink wrote batch {written}, its commit is missing: it is run again, and the sink, which has it, skips it"
    )
    if seen.profile is None or not seen.profile.watermark_delays_ms:
        return text
    # Measured: docs/decisions/0048. No row of a skipped batch is looked at, its event times neither.
    return f"{text}; the watermark then misses it, so rows late only by it may count: a rebuild is exact"


def _batches(first: int, last: int) -> str:
    return f"batch {first}" if first == last else f"batches {first}..{last}"
