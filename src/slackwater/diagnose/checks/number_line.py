"""A stream's marks, compared with each other."""

from slackwater.core.commands import command, rebuild_command, run_command
from slackwater.core.facts import Severity
from slackwater.core.sink import newest_batch
from slackwater.core.snapshot import Snapshot
from slackwater.core.units import batch_range
from slackwater.diagnose.checks.common.check import DAMAGED, Findings, Found, When, rule
from slackwater.diagnose.checks.common.snapshot import (
    SHOWN,
    STATE_FOLDER,
    and_more,
    damage,
    is_known,
    location_of,
    lost_batch,
    newest_allowed,
    newest_written,
    outputs_with_next,
    range_differs,
    state_held,
    state_is_lost,
)


@rule("checkpoint-behind", Severity.STOP, order=212, risk="duplicate", also=("FSINK-04",))
def checkpoint_behind(snapshot: Snapshot) -> Findings:
    """The checkpoint lacks batches that had been committed.

    Condition: the ledger has commits that the checkpoint lacks, as after a restore from a backup, and the sink does
    not show what it holds.
    Effect: the batches would run again; a sink without batch ids gets their rows twice.
    How to confirm: compare `slackwater inspect STREAM` with `slackwater ledger STREAM --batches 0..`.
    Remedy: `slackwater plan rebuild STREAM`.
    Safety: yes; the new checkpoint continues after the newest committed batch, and the output is not
    touched.
    References: docs/decisions/0120-sinks-that-show-nothing.md
    """
    committed, recorded = snapshot.marks.committed, snapshot.recorded.committed
    if snapshot.marks.written is not None or recorded <= committed or lost_batch(snapshot) is not None:
        return
    ends = f"ends at batch {committed}" if committed >= 0 else "has no committed batch"
    yield Found(
        f"the checkpoint {ends}, but {batch_range(committed + 1, recorded)} had been committed; a start would write "
        "their rows a second time",
        goal="rebuild",
        next=rebuild_command(snapshot),
        expected=f"batch {recorded} in commits/",
        found=newest_batch(committed),
    )


@rule(
    "checkpoint-damaged",
    Severity.STOP,
    order=211,
    risk="stuck",
    ends_with=DAMAGED,
    also=("STATE-02", "STATE-05", "STATE-08"),
)
def checkpoint_damaged(snapshot: Snapshot) -> Findings:
    """A file of the checkpoint is missing or damaged.

    Condition: a file that the next start reads is missing, torn, differs from its checksum or has an unknown
    format.
    Effect: Spark would fail at the start, or a few batches later at the first read of the file.
    How to confirm: `slackwater inspect STREAM` lists all damage.
    Remedy: `slackwater plan resume STREAM` if only logs are damaged: it restores them from the ledger and copies
    the state. Otherwise `slackwater plan rebuild STREAM`, or restore the file from a backup of this checkpoint.
    Safety: yes; the undo switches back to the damaged checkpoint.
    References: docs/decisions/0265-all-state-that-a-start-reads.md
    """
    found = damage(snapshot)
    # A checkpoint without any batch has a finding of its own: checkpoint-lost.
    if not found or lost_batch(snapshot) is not None:
        return
    worst = found[0]
    keeps_state = not state_is_lost(snapshot) and not any(one.path.startswith(STATE_FOLDER) for one in found)
    resumes = keeps_state and snapshot.marks.written is not None
    yield Found(
        f"the checkpoint is damaged: {worst.clause}{and_more(found, 1)}",
        goal="resume" if resumes else "rebuild",
        next=command("plan", "resume", snapshot.stream.full_name) if resumes else rebuild_command(snapshot),
        where=snapshot.generation.location,
        expected=worst.expected,
        found=worst.found,
    )


@rule("checkpoint-lost", Severity.STOP, order=210, risk="skip", also=("SINK-01",))
def checkpoint_lost(snapshot: Snapshot) -> Findings:
    """The checkpoint holds no batch, but the stream has run.

    Condition: the ledger has batches, and the checkpoint's offsets/ is empty or does not exist.
    Effect: Spark would count from batch 0 again. A sink with batch ids skips the new batches silently; any
    other sink gets their rows twice.
    How to confirm: `slackwater inspect STREAM` and `slackwater ledger STREAM --batches 0..`.
    Remedy: `slackwater plan rebuild STREAM`. It builds a checkpoint from the recorded ranges, under the original
    ids.
    Safety: yes; the new checkpoint is verified before it is used, and the output is not touched.
    References: docs/decisions/0056-what-a-lost-ledger-is-restored-from.md
    """
    newest = lost_batch(snapshot)
    if newest is None:
        return
    skips = snapshot.marks.written is not None or snapshot.output.batches_skipped
    yield Found(
        f"the checkpoint holds no batch, but batches up to {newest} were run; a start would count from 0 again and "
        + ("the sink would skip the new batches" if skips else "write their rows a second time"),
        risk="skip" if skips else "duplicate",
        goal="rebuild",
        next=rebuild_command(snapshot),
        where=snapshot.generation.location,
        expected=f"batch {newest} in offsets/",
        found="none",
    )


@rule("clean", Severity.INFO, order=304, when=When.IN_ORDER, on_output=True)
def clean(snapshot: Snapshot) -> Findings:
    """Checkpoint and sink agree.

    Condition: the newest batch of the sink is the newest committed batch, and its state can be loaded.
    Effect: none; an interrupted batch runs again with its planned range.
    How to confirm: `slackwater status STREAM --verify` reads every file that the marks depend on.
    Remedy: `slackwater run FILE`.
    Safety: yes.
    References: docs/decisions/0050-one-snapshot-one-number-line.md
    """
    marks = snapshot.marks
    if marks.planned >= 0 and marks.written is not None and not outputs_with_next(snapshot):
        interrupted = f"batch {marks.planned} was interrupted and will run again"
        yield Found(
            f"clean: {interrupted if marks.next_is_planned else 'checkpoint and sink agree'}",
            goal="resume",
            next=run_command(snapshot.stream),
        )


@rule("commit-missing", Severity.INFO, order=302, when=When.IN_ORDER, also=("LOG-08",), on_output=True)
def commit_missing(snapshot: Snapshot) -> Findings:
    """The next batch is in the sink, but not committed.

    Condition: a run was killed after the sink wrote the batch and before Spark committed it; the batch is planned
    with its recorded range.
    Effect: none; the batch runs again with its planned range, and the sink skips it.
    How to confirm: compare committed and written in `slackwater status STREAM`.
    Remedy: `slackwater run FILE`.
    Safety: yes; the sink skips a batch that it has.
    References: docs/decisions/0255-a-batch-that-the-sink-has.md
    """
    having, following = outputs_with_next(snapshot), snapshot.marks.next_batch
    if snapshot.marks.planned < 0 or len(having) < len(snapshot.outputs):
        return
    completed = snapshot.completed_batch is not None
    then = "the next run completes it without writing it again" if completed else "it will run again and be skipped"
    yield Found(
        f"clean: batch {following} is in the sink, but not committed; {then}",
        goal="resume",
        next=run_command(snapshot.stream),
    )


@rule("no-data-batch-pending", Severity.INFO, order=420, from_plan=True)
def no_data_batch_pending(snapshot: Snapshot) -> Findings:
    """A batch without data is pending.

    Condition: the newest commit has a newer watermark than its offsets, so a running query would plan a batch
    without data to write the results that the watermark has closed.
    Effect: a restart by Spark alone forgets this batch; a run by Slackwater plans it.
    How to confirm: `slackwater status STREAM --format json` has its id as `marks.pending_no_data`.
    Remedy: `slackwater run FILE`.
    Safety: yes; the output is the same as without an interruption.
    References: docs/decisions/0053-the-no-data-batch.md, docs/decisions/0256-when-the-no-data-batch-is-planned.md
    """
    batch = snapshot.marks.pending_no_data
    if batch is not None:
        yield Found(
            f"batch {batch}, without data, writes what the newest watermark has closed; the next start plans it, "
            "unless a source has unread data, which the batch then reads"
        )


@rule("range-changed", Severity.STOP, order=232, risk="skip", also=("LOG-11",))
def range_changed(snapshot: Snapshot) -> Findings:
    """The next batch is planned with a different range than the sink has written.

    Condition: the sink has the planned batch, and its offsets in offsets/ differ from the ledger's.
    Effect: the sink would silently skip the rows of the new range.
    How to confirm: compare the offsets of the batch in `slackwater inspect STREAM` and in `slackwater ledger STREAM
    --batches 0..`.
    Remedy: `slackwater plan rebuild STREAM`. It continues after the written batch with its recorded range.
    Safety: yes; the output is not touched.
    References: docs/decisions/0050-one-snapshot-one-number-line.md
    """
    newest = newest_written(snapshot)
    if newest != newest_allowed(snapshot) or not snapshot.marks.next_is_planned or not range_differs(snapshot):
        return
    yield Found(
        f"the sink holds batch {newest}, but the checkpoint has planned batch {newest} with a different range; "
        "the sink would skip its rows silently",
        goal="rebuild",
        next=rebuild_command(snapshot),
        expected=f"the range that was recorded for batch {newest}",
        found="a different range in offsets/",
    )


@rule("state-lost", Severity.STOP, order=240, risk="stuck", also=("STATE-01", "STATE-03", "STATE-04", "STATE-13"))
def state_lost(snapshot: Snapshot) -> Findings:
    """The next batch needs state that cannot be loaded.

    Condition: state of the newest committed batch is missing or damaged in an operator, partition or store.
    Effect: Spark would fail at every start with CANNOT_LOAD_STATE_STORE.
    How to confirm: compare committed and state in `slackwater status STREAM`; `slackwater inspect STREAM --operators`
    shows each store.
    Remedy: `slackwater plan rebuild STREAM`. It recomputes the state from the batches that contribute to it.
    Safety: yes; the plan checks that the sources still have these batches' rows.
    References: docs/decisions/0265-all-state-that-a-start-reads.md
    """
    if not state_is_lost(snapshot):
        return
    held, following = state_held(snapshot), snapshot.marks.next_batch
    loadable = f"can be loaded up to batch {held} only" if held >= 0 else "cannot be loaded"
    yield Found(
        f"batch {following} needs the state of batch {following - 1}, which {loadable}",
        goal="rebuild",
        next=rebuild_command(snapshot),
        where=snapshot.generation.location,
        expected=f"state of batch {following - 1}",
        found=f"state of batch {held}" if held >= 0 else "no state",
    )


@rule(
    "watermark-misses-batch", Severity.WARNING, order=400, risk="wrong", from_plan=True, also=("WM-01",), on_output=True
)
def watermark_misses_batch(snapshot: Snapshot) -> Findings:
    """A batch that the sink skips does not advance the watermark.

    Condition: without Slackwater, a query was killed after the sink wrote a batch and before Spark committed it;
    its sink skips the batch without reading its rows.
    Effect: rows that an uninterrupted run drops as late may be counted.
    How to confirm: compare committed and written in `slackwater status STREAM`.
    Remedy: `slackwater plan resume STREAM` cuts the batch out of the sink and runs it again; if the sink cannot be
    cut, `slackwater plan rebuild STREAM --pipeline STREAM.py`.
    Safety: yes; the rows that are cut are kept for the undo.
    References: docs/decisions/0048-batches-the-sink-skipped.md
    """
    # Measured: no row of such a batch is read.
    if not snapshot.misses_watermark:
        return
    goal, following = (
        ("resume", command("plan", "resume", snapshot.stream.full_name))
        if snapshot.output.can_cut
        else ("rebuild", rebuild_command(snapshot))
    )
    yield Found(
        f"batch {snapshot.marks.written} is in the sink, which will skip it, so it does not advance the watermark: "
        f"rows that only this watermark makes late may be counted; exact instead: {following}",
        goal=goal,
        next=following,
    )


@rule(
    "sink-ahead",
    Severity.STOP,
    order=230,
    risk="skip",
    also=("FSINK-04", "SHARE-04", "SINK-01", "SINK-06"),
    on_output=True,
)
def sink_ahead(snapshot: Snapshot) -> Findings:
    """The sink has batches that the checkpoint has not planned.

    Condition: the sink's newest batch is newer than the next batch, or equals an unplanned next batch: the
    checkpoint was restored from an older copy, or cut back.
    Effect: Spark would give these ids to new rows, and the sink would skip them silently.
    How to confirm: compare planned and written in `slackwater status STREAM`.
    Remedy: `slackwater plan rebuild STREAM`. It continues after the newest written batch.
    Safety: yes; the output is not touched, and no id is used for other rows.
    References: docs/decisions/0050-one-snapshot-one-number-line.md
    """
    newest = newest_written(snapshot)
    if newest is None or newest <= newest_allowed(snapshot) or not is_known(snapshot):
        return
    yield Found(
        f"the sink is ahead of the checkpoint: it would skip {batch_range(snapshot.marks.next_batch, newest)} silently",
        goal="rebuild",
        next=rebuild_command(snapshot),
        where=location_of(snapshot, newest),
        expected=f"written at most {newest_allowed(snapshot)}",
        found=f"written {newest}",
    )


@rule(
    "sink-behind",
    Severity.STOP,
    order=233,
    risk="loss",
    also=("FSINK-01", "FSINK-05", "FSINK-08", "MODE-07"),
    on_output=True,
)
def sink_behind(snapshot: Snapshot) -> Findings:
    """The sink lacks batches that the checkpoint has committed.

    Condition: the newest batch of an output is older than the newest committed batch: the output was emptied,
    restored from an older copy, or cut.
    Effect: Spark would continue after the missing batches and lose their rows.
    How to confirm: compare committed and written in `slackwater status STREAM`.
    Remedy: `slackwater plan rebuild STREAM`. It continues after the newest batch that all outputs have. If the sink
    shows no batch, put a moved or deleted output back; without it `slackwater plan rebuild STREAM --at earliest`
    processes everything again.
    Safety: yes; the missing batches are processed again, and the sink's rows are kept.
    References: docs/decisions/0050-one-snapshot-one-number-line.md, docs/decisions/0150-several-outputs-and-audits.md
    """
    newest, committed = newest_written(snapshot), snapshot.marks.next_batch - 1
    if newest is None or newest > newest_allowed(snapshot):
        return
    oldest = max(min(snapshot.shown), snapshot.generation.floor)
    if oldest >= committed:
        return
    # An output that has the planned batch with another range has a finding of its own: range-changed.
    if newest == committed + 1 and range_differs(snapshot):
        return
    emptied = oldest < 0 and not snapshot.output.members
    yield Found(
        f"the sink lacks {batch_range(oldest + 1, committed)}, which the checkpoint has committed; a "
        "start would skip their rows",
        goal="rebuild",
        next=rebuild_command(snapshot, *(("--at", "earliest") if emptied else ())),
        advice=f"if the output was moved or deleted, put it back at {snapshot.output.location} first"
        if emptied
        else None,
        where=location_of(snapshot, oldest) if snapshot.output.members else None,
        expected=f"written at least {committed}",
        found=f"written {oldest}",
    )


@rule("source-files-missing", Severity.STOP, order=250, risk="loss", also=("FSRC-03",))
def source_files_missing(snapshot: Snapshot) -> Findings:
    """Source files of the planned batch do not exist.

    Condition: source files of the next, planned batch were deleted or moved.
    Effect: Spark fails, or with ignoreMissingFiles skips their rows silently.
    How to confirm: the finding names the files; `slackwater inspect STREAM` shows the batch.
    Remedy: restore the files under their recorded paths, then `slackwater run FILE`.
    Safety: yes, if their content is unchanged.
    References: docs/decisions/0243-replaced-source-files.md
    """
    missing = snapshot.missing_files
    if missing:
        yield Found(
            f"batch {snapshot.marks.next_batch} is planned with {len(missing)} source files that do not exist; its "
            "rows cannot be read",
            advice="restore the files; Spark would fail, or leave their rows out with ignoreMissingFiles",
            expected="every file of the planned range",
            found=f"{', '.join(missing[:SHOWN])}{and_more(missing, SHOWN)} missing",
        )
