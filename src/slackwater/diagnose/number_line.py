"""The number line of a stream: what its marks, compared with each other, mean for the next start.

A run refuses to start on the stops found here, ``status`` shows them, plans are built on them. The table is in the
design, section 1: w is the newest batch the sink shows, r the batch that Spark would run next, o, c and v the newest
planned batch, committed batch and batch whose state can be loaded.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from slackwater.diagnose.identity import identity_findings
from slackwater.diagnose.words import batch_range, rebuild_command, run_command, undo_command
from slackwater.model.damage import Damage
from slackwater.model.finding import Finding, Goal, Severity
from slackwater.model.marks import NONE_YET
from slackwater.model.profile import QueryProfile
from slackwater.model.records import UNDOING, OperationRecord
from slackwater.model.snapshot import Snapshot

DAMAGED = 3
REFUSED = 5
FAILED = 7
SHOWN = 3
STATE_FOLDER = "state/"


def findings(snapshot: Snapshot) -> tuple[Finding, ...]:
    """Everything that is known of the stream, the most urgent first; never empty."""
    first = (*operation_findings(snapshot), *identity_findings(snapshot))
    if snapshot.holder is not None:
        # Marks and files change while a process writes; comparing them would give false findings.
        return (*first, _held(snapshot), *_delivery(snapshot))
    found = (
        *first,
        *_unreadable(snapshot),
        *_checkpoint(snapshot),
        *_sink(snapshot),
        *_state(snapshot),
        *_sources(snapshot),
        *_last_failure(snapshot),
    )
    notes = (
        *_skipped_batch(snapshot),
        *several_watermarks(snapshot.profile),
        *_owed(snapshot),
        *_delivery(snapshot),
        *_orphans(snapshot),
    )
    if any(finding.severity is Severity.STOP for finding in found):
        return (*found, *notes)
    failed = [finding for finding in found if finding.exit_code]
    return (*found, *notes) if failed else (*found, _in_order(snapshot), *notes)


def stops(snapshot: Snapshot) -> tuple[Finding, ...]:
    """What a start must be refused for."""
    return tuple(finding for finding in findings(snapshot) if finding.severity is Severity.STOP)


def operation_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where an operation on the stream has not ended."""
    yield from open_operation(snapshot.operation, snapshot.holder)


def open_operation(left: OperationRecord | None, holder: str | None) -> Iterator[Finding]:
    """The same of a stream's operation that has not ended, and the purpose of the lease that is held."""
    if left is None:
        return
    if holder is not None and holder != "run":
        yield Finding(
            "operation-running", Severity.STOP, f"operation {left.id} ({left.goal}) is in progress", exit_code=0
        )
        return
    undo = undo_command(left.id)
    undoing = left.status == UNDOING
    yield Finding(
        "operation-unfinished",
        Severity.STOP,
        f"undoing operation {left.id} ({left.goal}) was interrupted; it must be finished first"
        if undoing
        else f"operation {left.id} ({left.goal}) was interrupted; it must be finished or undone first",
        risk="stuck",
        next=undo if undoing else f"slackwater apply {shlex.quote(left.summary or 'PLAN')} --yes",
        advice=None if undoing else f"or, to go back: {undo}",
        exit_code=REFUSED,
    )


def _held(snapshot: Snapshot) -> Finding:
    text = "running" if snapshot.holder == "run" else f"{snapshot.holder} is in progress"
    return Finding("running", Severity.INFO, text)


def _unreadable(snapshot: Snapshot) -> Iterator[Finding]:
    problem = snapshot.output.unreadable
    if problem is not None:
        yield Finding(
            problem.code,
            Severity.STOP,
            f"the batch that was written last is unknown: {problem.text}",
            risk="loss",
            advice=problem.hint or "restore the file from a backup",
            where=problem.where,
            expected=problem.expected,
            found=problem.found,
            exit_code=DAMAGED,
        )


def _checkpoint(snapshot: Snapshot) -> Iterator[Finding]:
    marks, recorded = snapshot.marks, snapshot.recorded
    newest = max(recorded.planned, recorded.committed)
    if marks.planned < 0 <= newest:
        yield _checkpoint_lost(snapshot, newest)
        return
    damage = [one for one in snapshot.damage if not _is_state_that_is_lost(snapshot, one)]
    if damage:
        worst = damage[0]
        more = f" and {len(damage) - 1} more" if len(damage) > 1 else ""
        yield Finding(
            "checkpoint-damaged",
            Severity.STOP,
            f"the checkpoint is damaged: {worst.path} is {worst.kind}{more}",
            risk="stuck",
            goal="rebuild",
            next=rebuild_command(snapshot),
            where=snapshot.generation.location,
            expected=worst.expected or None,
            found=worst.found or None,
            exit_code=DAMAGED,
        )
    if marks.written is None and recorded.committed > marks.committed:
        yield Finding(
            "checkpoint-behind",
            Severity.STOP,
            f"the checkpoint ends at batch {marks.committed}, but "
            f"{batch_range(marks.committed + 1, recorded.committed)} had been committed; a start would write their "
            "rows a second time",
            risk="duplicate",
            goal="rebuild",
            next=rebuild_command(snapshot),
            expected=f"batch {recorded.committed} in commits/",
            found=f"batch {marks.committed}",
            exit_code=REFUSED,
        )


def _checkpoint_lost(snapshot: Snapshot, newest: int) -> Finding:
    lost = f"the checkpoint holds no batch, but batches up to {newest} were run; a start would count from 0 again and "
    if snapshot.marks.written is None and not snapshot.output.batches_skipped:
        return Finding(
            "checkpoint-lost",
            Severity.STOP,
            f"{lost}write their rows a second time",
            risk="duplicate",
            goal="rebuild",
            next=rebuild_command(snapshot),
            where=snapshot.generation.location,
            expected=f"batch {newest} in offsets/",
            found="none",
            exit_code=REFUSED,
        )
    return Finding(
        "checkpoint-lost",
        Severity.STOP,
        f"{lost}the sink would skip the new batches",
        risk="skip",
        goal="rebuild",
        next=rebuild_command(snapshot),
        where=snapshot.generation.location,
        expected=f"batch {newest} in offsets/",
        found="none",
        exit_code=REFUSED,
    )


def _sink(snapshot: Snapshot) -> Iterator[Finding]:
    """Of several outputs the newest mark shows what is ahead, and the oldest what is behind.

    One that has the planned batch, which another lacks, is not ahead: it will skip the batch.
    """
    marks, following = snapshot.marks, snapshot.marks.next_batch
    if snapshot.output.damage and snapshot.shown:
        yield _output_damaged(snapshot)
    if not snapshot.shown or marks.planned < 0 <= snapshot.recorded.planned:
        return
    oldest, written = max(min(snapshot.shown), snapshot.generation.floor), max(snapshot.shown)
    if written > following or (written == following and not marks.next_is_planned):
        yield _sink_ahead(snapshot, written, following)
    elif written == following and _another_range(snapshot):
        yield Finding(
            "range-changed",
            Severity.STOP,
            f"the sink holds batch {written}, but the checkpoint has planned batch {written} with another range; the "
            "sink would skip its rows silently",
            risk="skip",
            goal="rebuild",
            next=rebuild_command(snapshot),
            expected=f"the range that was recorded for batch {written}",
            found="another range in offsets/",
            exit_code=REFUSED,
        )
    elif oldest < following - 1:
        missing = batch_range(oldest + 1, following - 1)
        yield Finding(
            "sink-behind",
            Severity.STOP,
            f"the sink lacks {missing}, which the checkpoint has committed; a start would leave their rows out",
            risk="loss",
            goal="rebuild",
            next=rebuild_command(snapshot),
            where=_place(snapshot, oldest) if snapshot.output.members else None,
            expected=f"written at least {following - 1}",
            found=f"written {oldest}",
            exit_code=REFUSED,
        )


def _sink_ahead(snapshot: Snapshot, written: int, following: int) -> Finding:
    skipped = batch_range(following, written)
    known = snapshot.recorded.planned >= 0 or snapshot.marks.planned >= 0
    return Finding(
        "sink-ahead" if known else "sink-foreign",
        Severity.STOP,
        f"the sink is ahead of the checkpoint: it would skip {skipped} silently"
        if known
        else f"the output already holds {batch_range(0, written)}, of which this stream has no record; the sink would "
        f"skip the stream's own {skipped} silently",
        risk="skip",
        goal="rebuild" if known else None,
        next=rebuild_command(snapshot) if known else None,
        advice=None if known else "give the stream an output directory of its own, or move this one away",
        where=_place(snapshot, written),
        expected=f"written at most {following - 1 if not snapshot.marks.next_is_planned else following}",
        found=f"written {written}",
        exit_code=REFUSED,
    )


def _place(snapshot: Snapshot, written: int) -> str | None:
    """Where the output is that shows this batch as its newest."""
    return next((one.location for one in snapshot.outputs if one.written == written), snapshot.output.location)


def _another_range(snapshot: Snapshot) -> bool:
    """Whether the next batch was recorded with other offsets than the checkpoint has planned it with."""
    recorded, planned = snapshot.recorded.next_entry, snapshot.planned_entry
    return recorded is not None and planned is not None and recorded.offsets != planned.offsets


def _output_damaged(snapshot: Snapshot) -> Finding:
    worst = snapshot.output.damage[0]
    others = len(snapshot.output.damage) - 1
    more = f" and {others} more" if others else ""
    return Finding(
        "output-damaged",
        Severity.STOP,
        f"the output is damaged: {worst.path} is {worst.kind}{more}",
        risk="loss",
        goal="rebuild",
        next=f"{rebuild_command(snapshot)} --at earliest",
        advice="restore the files from a backup, or process the batches that wrote them again",
        where=snapshot.output.location,
        expected=worst.expected or None,
        found=worst.found or None,
        exit_code=DAMAGED,
    )


def _state_is_lost(snapshot: Snapshot) -> bool:
    marks = snapshot.marks
    needed = marks.next_batch - 1
    held = NONE_YET if marks.state is None else marks.state
    return snapshot.stateful and marks.planned >= 0 and held < needed


def _is_state_that_is_lost(snapshot: Snapshot, damage: Damage) -> bool:
    """Whether the damage is the missing state that ``state-lost`` reports with the batch that needs it."""
    return _state_is_lost(snapshot) and damage.kind == "missing" and damage.path.startswith(STATE_FOLDER)


def _state(snapshot: Snapshot) -> Iterator[Finding]:
    marks = snapshot.marks
    needed = marks.next_batch - 1
    held = NONE_YET if marks.state is None else marks.state
    if not _state_is_lost(snapshot):
        return
    found = f"can be loaded up to batch {held} only" if held >= 0 else "cannot be loaded"
    yield Finding(
        "state-lost",
        Severity.STOP,
        f"batch {marks.next_batch} needs the state of batch {needed}, which {found}",
        risk="stuck",
        goal="rebuild",
        next=rebuild_command(snapshot),
        where=snapshot.generation.location,
        expected=f"state of batch {needed}",
        found=f"state of batch {held}" if held >= 0 else "no state",
        exit_code=REFUSED,
    )


def _sources(snapshot: Snapshot) -> Iterator[Finding]:
    missing = snapshot.missing_files
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        yield Finding(
            "source-files-missing",
            Severity.STOP,
            f"batch {snapshot.marks.next_batch} is planned with {len(missing)} source files that do not exist; its "
            "rows cannot be read",
            risk="loss",
            advice="restore the files; Spark would fail, or leave their rows out with ignoreMissingFiles",
            expected="every file of the planned range",
            found=", ".join(missing[:SHOWN]) + more + " missing",
            exit_code=REFUSED,
        )


FAILURES = {
    "state-schema": ("the state does not fit the query any more", "rebuild"),
    "operator-changed": ("stateful operators were added or removed", "rebuild"),
    "source-added": ("the query has more sources than its checkpoint", None),
    "source-removed": ("the query has fewer sources than its checkpoint", None),
    "source-changed": ("a source of the query was replaced", None),
    "user-function": ("a function of the pipeline fails", None),
    "query-refused": ("Spark does not accept the query", None),
    "sink": ("the sink cannot write", None),
    "data-loss": ("a source no longer has rows that the next batch needs", None),
}
"""By ``failure_code``: what a permanent failure means, and which goal removes its cause, if one does."""


def _last_failure(snapshot: Snapshot) -> Iterator[Finding]:
    run = snapshot.last_run
    if run is None or run.end != "failed" or run.generation != snapshot.generation.number:
        # A generation that was switched in since has not failed.
        return
    reason = f": {run.reason}" if run.reason else ""
    if run.failure != "permanent":
        yield Finding(
            "failed",
            Severity.WARNING,
            f"the last run failed{reason}",
            risk="stuck",
            goal="resume",
            next=run_command(snapshot),
            exit_code=FAILED,
        )
        return
    meaning, goal = FAILURES.get(run.failure_code or "", ("the same run would fail again", None))
    rebuilds = goal == "rebuild"
    yield Finding(
        "failed-permanently",
        Severity.WARNING,
        f"the last run failed and would fail again: {meaning}{reason}",
        risk="stuck",
        goal="rebuild" if rebuilds else None,
        next=rebuild_command(snapshot) if rebuilds else None,
        advice=None
        if rebuilds
        else f"correct {snapshot.stream.pipeline_file or 'the pipeline'}, then run it: {run_command(snapshot)}",
        exit_code=FAILED,
    )


def _skipped_batch(snapshot: Snapshot) -> Iterator[Finding]:
    if not snapshot.misses_watermark:
        return
    # Measured: docs/decisions/0048. No row of a skipped batch is read, so its event times are not either.
    stream = snapshot.stream
    goal: Goal = "resume" if snapshot.output.can_cut else "rebuild"
    next_command = f"slackwater plan resume {stream.full_name}" if goal == "resume" else rebuild_command(snapshot)
    yield Finding(
        "watermark-misses-batch",
        Severity.WARNING,
        f"batch {snapshot.marks.written} will be skipped by the sink, which has it, and does not advance the "
        f"watermark: rows late only by it may be counted; exact instead: {next_command}",
        risk="wrong",
        goal=goal,
        next=next_command,
    )


def several_watermarks(profile: QueryProfile | None) -> Iterator[Finding]:
    """A warning where the query has more than one watermark; a start needs it before there is any batch."""
    if profile is not None and len(profile.watermark_delays_ms) > 1:
        yield Finding(
            "several-watermarks",
            Severity.WARNING,
            "the query has several watermarks, of which Spark keeps only the combined one over a restart: rows that an "
            "uninterrupted run drops as late may be counted, and windows may be written later",
            risk="wrong",
        )


def _owed(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.marks.owed is not None:
        yield Finding(
            "batch-owed",
            Severity.INFO,
            f"batch {snapshot.marks.owed}, without data, writes what the newest watermark has closed; the next start "
            "plans it, unless the batch before it left data unread",
        )


def _delivery(snapshot: Snapshot) -> Iterator[Finding]:
    """A warning where the sink does less than to hold each row once."""
    delivery = snapshot.output.delivery
    if delivery is not None and delivery.guarantee == "at-least-once":
        yield Finding(
            "at-least-once",
            Severity.WARNING,
            f"the {_kind(snapshot)} sink writes at least once, so that a restart can double rows: {delivery.reason}",
            risk="duplicate",
        )
    elif delivery is not None and delivery.guarantee == "none":
        yield Finding(
            "rows-not-kept",
            Severity.WARNING,
            f"the {_kind(snapshot)} sink keeps no rows over a restart: {delivery.reason}",
            risk="loss",
        )


def _kind(snapshot: Snapshot) -> str:
    return snapshot.stream.sink.get("kind") or "unknown"


def _orphans(snapshot: Snapshot) -> Iterator[Finding]:
    orphans = snapshot.output.orphans
    if orphans:
        more = f" and {len(orphans) - SHOWN} more" if len(orphans) > SHOWN else ""
        yield Finding(
            "orphan-files",
            Severity.INFO,
            f"{len(orphans)} files in the output belong to no batch, such as those of interrupted batches; readers "
            f"that use the manifest ignore them: {', '.join(orphans[:SHOWN])}{more}",
            where=snapshot.output.location,
        )


def _in_order(snapshot: Snapshot) -> Finding:
    marks, following = snapshot.marks, run_command(snapshot)
    if marks.planned < 0:
        return Finding("new", Severity.INFO, "no batch has been planned yet", next=following)
    having = [one.name for one in snapshot.outputs if one.written == marks.next_batch]
    if having and len(having) < len(snapshot.outputs):
        return Finding(
            "written-in-part",
            Severity.INFO,
            f"clean: batch {marks.next_batch} was interrupted between the outputs; it will run again, and be skipped "
            f"by {' and '.join(having)}, which has it",
            goal="resume",
            next=following,
        )
    if having:
        return Finding(
            "commit-missing",
            Severity.INFO,
            f"clean: the sink has batch {marks.next_batch}, its commit is missing; it will run again and be skipped",
            goal="resume",
            next=following,
        )
    if marks.written is None:
        again = f"; batch {marks.planned} was interrupted and will run again" if marks.next_is_planned else ""
        return Finding(
            "sink-silent",
            Severity.INFO,
            f"the checkpoint is in order; this sink does not show what it holds{again}",
            goal="resume",
            next=following,
        )
    text = "clean: checkpoint and sink agree"
    if marks.next_is_planned:
        text = f"clean: batch {marks.planned} was interrupted and will run again"
    return Finding("clean", Severity.INFO, text, goal="resume", next=following)
