"""Outputs, as the number line sees them."""

from slackwater.core.commands import rebuild_command, reset_command, run_command
from slackwater.core.facts import Severity
from slackwater.core.snapshot import Snapshot
from slackwater.core.units import batch_range, counted
from slackwater.diagnose.checks.common.check import DAMAGED, Findings, Found, When, rule
from slackwater.diagnose.checks.common.snapshot import (
    SHOWN,
    and_more,
    is_known,
    location_of,
    newest_allowed,
    newest_written,
    outputs_with_next,
    sink_kind,
)


@rule("sink-foreign", Severity.STOP, order=231, risk="skip", also=("SHARE-04",), on_output=True)
def sink_foreign(snapshot: Snapshot) -> Findings:
    """The output holds batches of which the stream has no record.

    Condition: the sink shows batches, and neither the ledger nor the checkpoint has a batch of the stream.
    Effect: the sink would silently skip the stream's own first batches, because it has their ids.
    How to confirm: `slackwater ledger STREAM --batches 0..` is empty, and written in `slackwater status STREAM` is not.
    Remedy: give the stream an output of its own, or move this output away.
    Safety: yes; the output's content is not touched.
    References: docs/decisions/0262-an-output-of-its-own.md
    """
    newest = newest_written(snapshot)
    if newest is None or newest <= newest_allowed(snapshot) or is_known(snapshot):
        return
    yield Found(
        f"the output already holds {batch_range(0, newest)}, of which this stream has no record; the sink would "
        f"skip the stream's own {batch_range(snapshot.marks.next_batch, newest)} silently",
        advice="give the stream an output directory of its own, or move this one away",
        where=location_of(snapshot, newest),
        expected=f"written at most {newest_allowed(snapshot)}",
        found=f"written {newest}",
    )


@rule(
    "sink-marker-lost",
    Severity.STOP,
    order=140,
    risk="duplicate",
    when=When.ALWAYS,
    about="marker",
    also=("FSINK-01", "SINK-02"),
    on_output=True,
)
def sink_marker_lost(snapshot: Snapshot) -> Findings:
    """The sink's marker was lost or set back, and the output may have rows that it does not show.

    Condition: the marker shows an older batch than the stream is known to have written, or none.
    Effect: batches in the output would be written twice. Nothing else is compared, as the other findings rely
    on this marker.
    How to confirm: compare the marker with the newest batches of `slackwater ledger STREAM --batches 0..`.
    Remedy: `slackwater plan reset STREAM --from earliest --output swap` if the sink can swap; otherwise restore the
    marker from the output's backup, or empty the output and plan as the finding says.
    Safety: a swap keeps the old rows for the undo. Emptying the output by hand cannot be undone.
    References: docs/decisions/0246-a-marker-that-was-lost.md, docs/decisions/0275-a-reset-without-a-marker.md
    """
    unmarked = snapshot.output.unmarked
    if unmarked is None or snapshot.holder is not None:
        return
    swaps = snapshot.can_swap_unmarked
    shown = f"batch {unmarked.marked}" if unmarked.marked >= 0 else "no batch"
    again = (
        rebuild_command(snapshot, "--at", "earliest")
        if unmarked.shows_rows
        else reset_command(snapshot, "--output", "keep")
    )
    yield Found(
        f"the sink's marker shows {shown}, but the stream has written later batches: if they are in the "
        "output, writing them again would double their rows",
        goal="rebuild" if unmarked.shows_rows and not swaps else "reset",
        next=reset_command(snapshot, "--output", "swap") if swaps else None,
        advice=("or " if swaps else "") + "restore the marker from a backup that was made together with the output's; "
        f"or {unmarked.emptied}, then: {again}",
        where=unmarked.location,
        expected=f"batch {unmarked.finished} or later" if unmarked.finished >= 0 else "the stream as its owner",
        found=shown,
    )


@rule(
    "sink-owned",
    Severity.STOP,
    order=120,
    risk="skip",
    when=When.ALWAYS,
    about="identity",
    also=("SHARE-04",),
    on_output=True,
)
def sink_owned(snapshot: Snapshot) -> Findings:
    """The output belongs to a different stream.

    Condition: the output's owner file or marker shows a different stream.
    Effect: batch ids of two streams collide in one output: the sink skips a batch whose id the other stream has
    written.
    How to confirm: `slackwater status STREAM` names the owner; `slackwater status` shows the streams of this home.
    Remedy: give the stream an output of its own, or move this output away.
    Safety: yes; the owner's rows are not touched.
    References: docs/decisions/0054-homes-and-outputs-know-whose-they-are.md
    """
    output = snapshot.output
    if output.owner is not None and output.owner != snapshot.stream.id:
        yield Found(
            f"the output belongs to stream {output.owner_name}; the sink would skip batches of a second stream that "
            "writes there",
            advice="give the stream an output directory of its own, or move this one away",
            where=output.location,
            expected=f"an output of {snapshot.stream.full_name}",
            found=f"an output of {output.owner_name}",
        )


@rule("sink-silent", Severity.INFO, order=303, when=When.IN_ORDER, on_output=True)
def sink_silent(snapshot: Snapshot) -> Findings:
    """The checkpoint is in order; the sink does not show what it holds.

    Condition: the sink has no mark of its newest batch to compare with the checkpoint.
    Effect: an interrupted batch is written again, even if the sink has its rows.
    How to confirm: `slackwater sinks` shows each sink's guarantee.
    Remedy: `slackwater run FILE`.
    Safety: as safe as the sink's guarantee: an at-least-once sink can get the rows of one batch twice.
    References: docs/decisions/0120-sinks-that-show-nothing.md
    """
    marks = snapshot.marks
    if marks.planned >= 0 and marks.written is None and not outputs_with_next(snapshot):
        again = f"; batch {marks.planned} was interrupted and will run again" if marks.next_is_planned else ""
        shown = snapshot.output.unchecked or "this sink does not show what it holds"
        yield Found(f"the checkpoint is in order; {shown}{again}", goal="resume", next=run_command(snapshot.stream))


@rule("sink-unreadable", Severity.STOP, order=200, risk="loss", ends_with=DAMAGED, on_output=True)
def sink_unreadable(snapshot: Snapshot) -> Findings:
    """The newest batch in the sink cannot be read.

    Condition: the manifest, log, marker or snapshot with the newest written batch cannot be parsed. The finding has
    the sink's error code, such as `manifest-unreadable`.
    Effect: the batches in the output are unknown, so rows could be lost or doubled.
    How to confirm: `slackwater status STREAM` shows the file, the expected and found content.
    Remedy: move a damaged manifest entry of a file sink away, and write its batch again: with `slackwater run FILE`
    if it is not committed, otherwise with `slackwater plan rebuild STREAM`. Restore any other file from a backup.
    Safety: yes; the damaged file is kept. An older backup than the output is reported as a separate finding.
    References: docs/decisions/0050-one-snapshot-one-number-line.md
    """
    problem = snapshot.output.unreadable
    if problem is None:
        return
    advice = problem.hint or "restore the file from a backup"
    if problem.aside is not None:
        batch, put_aside = problem.aside
        is_committed = snapshot.marks.committed >= batch
        again = rebuild_command(snapshot) if is_committed else run_command(snapshot.stream) or "start the program again"
        advice = f"{put_aside}, then: {again}"
    yield Found(
        f"the last written batch is unknown: {problem.message}",
        code=problem.code,
        advice=advice,
        where=problem.where,
        expected=problem.expected,
        found=problem.found,
    )


@rule(
    "output-damaged",
    Severity.STOP,
    order=220,
    risk="loss",
    ends_with=DAMAGED,
    also=("FSINK-02", "FSINK-03", "FSINK-06"),
    on_output=True,
)
def output_damaged(snapshot: Snapshot) -> Findings:
    """A file of the output is missing or damaged.

    Condition: a data file that the manifest or table lists is missing or has a different size.
    Effect: written rows are lost; readers fail, or skip them.
    How to confirm: `slackwater status STREAM --verify` looks at every file that the output lists.
    Remedy: restore the files from a backup, or process the batches again: `slackwater plan rebuild STREAM --at
    earliest`.
    Safety: the rebuild keeps the removed rows for the undo. The plan checks that the sources still have the
    rows.
    References: docs/decisions/0063-outputs-cut-and-restore.md
    """
    damage = snapshot.output.damage
    if not damage or not snapshot.shown:
        return
    worst = damage[0]
    yield Found(
        f"the output is damaged: {worst.clause}{and_more(damage, 1)}",
        goal="rebuild",
        next=rebuild_command(snapshot, "--at", "earliest"),
        advice="restore the files from a backup, or process the batches that wrote them again",
        where=snapshot.output.location,
        expected=worst.expected,
        found=worst.found,
    )


@rule("orphan-files", Severity.INFO, order=440, also=("FSINK-07",), on_output=True)
def orphan_files(snapshot: Snapshot) -> Findings:
    """Files in the output belong to no batch.

    Condition: data files in the output's directory are not in its manifest, such as files of interrupted batches.
    Effect: readers that list the directory, not the manifest, would count their rows.
    How to confirm: `slackwater status STREAM --verify` lists the first of them.
    Remedy: nothing; they can be deleted while nothing runs.
    Safety: yes, for the files in the finding; no batch refers to them.
    References: docs/decisions/0063-outputs-cut-and-restore.md
    """
    orphans = snapshot.output.orphans
    if orphans:
        yield Found(
            f"{counted(len(orphans), 'file')} of no batch in the output, such as files of interrupted batches; readers "
            f"that use the manifest ignore them: {', '.join(orphans[:SHOWN])}{and_more(orphans, SHOWN)}",
            where=snapshot.output.location,
        )


@rule("written-in-part", Severity.INFO, order=301, when=When.IN_ORDER)
def written_in_part(snapshot: Snapshot) -> Findings:
    """The next batch is in some of the outputs, but not in all.

    Condition: a run was killed between the outputs of one batch.
    Effect: none; the batch runs again with its planned range, and outputs with this batch skip it.
    How to confirm: `slackwater status STREAM` shows the newest batch of each output.
    Remedy: `slackwater run FILE`.
    Safety: yes; each output shows its own batches.
    References: docs/decisions/0150-several-outputs-and-audits.md
    """
    having, following = outputs_with_next(snapshot), snapshot.marks.next_batch
    if snapshot.marks.planned >= 0 and having and len(having) < len(snapshot.outputs):
        yield Found(
            f"clean: batch {following} was interrupted between the outputs; it will run again, and be skipped by "
            f"{' and '.join(having)}, which contains it",
            goal="resume",
            next=run_command(snapshot.stream),
        )


@rule("rows-not-kept", Severity.WARNING, order=431, risk="loss", when=When.ALWAYS)
def rows_not_kept(snapshot: Snapshot) -> Findings:
    """The sink keeps no rows over a restart.

    Condition: this kind of sink holds its rows in memory or discards them.
    Effect: rows of earlier runs are lost with the process.
    How to confirm: `slackwater sinks` shows each sink's guarantee and its reason.
    Remedy: nothing in a trial; otherwise use a sink that keeps its rows.
    Safety: a different sink makes a new stream, with a new name and output.
    References: docs/decisions/0120-sinks-that-show-nothing.md, docs/sinks.md
    """
    delivery = snapshot.output.delivery
    if delivery is not None and delivery.guarantee == "none":
        yield Found(f"the {sink_kind(snapshot)} sink keeps no rows over a restart: {delivery.reason}")


@rule(
    "at-least-once",
    Severity.WARNING,
    order=430,
    risk="duplicate",
    when=When.ALWAYS,
    also=("SINK-03", "SINK-04", "SINK-05"),
    on_output=True,
)
def at_least_once(snapshot: Snapshot) -> Findings:
    """The sink is at-least-once.

    Condition: this kind of sink, with its options, cannot recognise a written batch.
    Effect: a batch interrupted after its write is written twice.
    How to confirm: `slackwater sinks` shows each sink's guarantee and its reason.
    Remedy: nothing if readers drop duplicates; otherwise use an exactly-once sink.
    Safety: a different sink makes a new stream, with a new name and output.
    References: docs/decisions/0120-sinks-that-show-nothing.md, docs/sinks.md
    """
    delivery = snapshot.output.delivery
    if delivery is not None and delivery.guarantee == "at-least-once":
        yield Found(
            f"the {sink_kind(snapshot)} sink writes at least once, so that a restart can double rows: {delivery.reason}"
        )
