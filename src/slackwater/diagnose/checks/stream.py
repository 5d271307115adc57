"""Operations, home, last run, and query of a stream."""

from collections.abc import Iterator
from typing import Literal

from slackwater.core.commands import apply_command, command, rebuild_command, run_command, undo_command
from slackwater.core.facts import Finding, Severity
from slackwater.core.records import UNDOING, OperationRecord
from slackwater.core.reference import split_reference
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.checks.common.check import FAILED, Findings, Found, When, rule
from slackwater.diagnose.checks.common.snapshot import FAILURES, failed_run
from slackwater.sources import kind_described


def in_progress(operation: OperationRecord | None, holder: str | None) -> Iterator[Finding]:
    return map(operation_running.finding, _in_progress(operation, holder))


def _in_progress(operation: OperationRecord | None, holder: str | None) -> Findings:
    if operation is not None and holder not in {None, "run"}:
        yield Found(f"operation {operation.id} ({operation.goal}) is in progress")


@rule("operation-running", Severity.STOP, ends_with=0, order=100, when=When.ALWAYS, about="operation")
def operation_running(snapshot: Snapshot) -> Findings:
    """An operation on the stream is in progress.

    Condition: an operation in the ledger has not ended, and the process that applies or undoes it holds the lease.
    Effect: the checkpoint or the output is being changed; a start now would read a partial change.
    How to confirm: `slackwater status STREAM` names the process that holds the lease, and since when.
    Remedy: wait until the operation has ended, then run `slackwater status STREAM` again.
    Safety: yes; waiting changes nothing.
    References: docs/decisions/0013-lease.md
    """
    yield from _in_progress(snapshot.operation, snapshot.holder)


def unfinished(operation: OperationRecord | None, holder: str | None, session: tuple[str, ...]) -> Iterator[Finding]:
    return map(operation_unfinished.finding, _unfinished(operation, holder, session))


def _unfinished(operation: OperationRecord | None, holder: str | None, session: tuple[str, ...]) -> Findings:
    if operation is None or holder not in {None, "run"}:
        return
    undo, undoing = undo_command(operation.id), operation.status == UNDOING
    yield Found(
        f"undoing operation {operation.id} ({operation.goal}) was interrupted; it must be finished first"
        if undoing
        else f"operation {operation.id} ({operation.goal}) was interrupted; it must be finished or undone first",
        next=undo if undoing else apply_command(operation.summary, session),
        advice=None if undoing else f"or, to go back: {undo}",
    )


@rule("operation-unfinished", Severity.STOP, order=101, risk="stuck", when=When.ALWAYS, about="operation")
def operation_unfinished(snapshot: Snapshot) -> Findings:
    """An operation on the stream was interrupted.

    Condition: an operation in the ledger has not ended, and no process works on it.
    Effect: the checkpoint or the output may be partly changed. Each step is journaled, so that it can be
    finished.
    How to confirm: `slackwater ledger STREAM --operations` lists the operation with its status.
    Remedy: `slackwater apply PLAN --yes` finishes it, `slackwater undo OPERATION --yes` undoes it; an interrupted
    undo needs the latter.
    Safety: yes; finished steps are not repeated, and all preconditions are checked before the next step.
    References: docs/decisions/0052-actions-with-inverses.md
    """
    yield from _unfinished(snapshot.operation, snapshot.holder, snapshot.stream.session)


def misplaced(place: Literal["moved", "copied"], was: str | None) -> Finding:
    """A home recorded at ``was``."""
    check = home_moved if place == "moved" else home_copied
    return check.finding(_misplaced(place, was))


def _misplaced(place: Literal["moved", "copied"], was: str | None) -> Found:
    was = was or "a different place"
    text, accept = f"the home was moved here from {was}", command("home", "accept", "--moved")
    if place == "copied":
        accept = command("home", "accept", "--copied")
        text = f"the home is a copy of {was}; what it does would change the original's outputs"
    return Found(text, advice=f"if that is so: {accept}", expected=f"a home at {was}")


@rule("home-moved", Severity.STOP, order=110, risk="wrong", when=When.ALWAYS, about="identity", also=("MOVE-01",))
def home_moved(snapshot: Snapshot) -> Findings:
    """The home was moved.

    Condition: the home is not in its recorded folder, and that folder no longer has it.
    Effect: checkpoint locations in the ledger are below the old folder; a start could not find them.
    How to confirm: compare `--home` with the folder that the finding names.
    Remedy: if the move was intended, confirm it with `slackwater home accept --moved`.
    Safety: yes; recorded locations below the old folder are replaced by locations below the new folder.
    References: docs/decisions/0054-homes-and-outputs-know-whose-they-are.md
    """
    if snapshot.home == "moved":
        yield _misplaced("moved", snapshot.home_was)


@rule("home-copied", Severity.STOP, order=111, risk="wrong", when=When.ALWAYS, about="identity", also=("MOVE-01",))
def home_copied(snapshot: Snapshot) -> Findings:
    """The home is a copy.

    Condition: the home is not in its recorded folder, which still has the original.
    Effect: both would write to the same outputs, and each would skip or double the other's batches.
    How to confirm: look for a home in the folder that the finding names.
    Remedy: to use the copy, confirm it with `slackwater home accept --copied`. The copy gets new ids, and its
    streams need their own outputs.
    Safety: yes; the original keeps its outputs, and its operations cannot be undone in the copy.
    References: docs/decisions/0054-homes-and-outputs-know-whose-they-are.md,
    docs/decisions/0261-operations-of-a-copied-home.md
    """
    if snapshot.home == "copied":
        yield _misplaced("copied", snapshot.home_was)


@rule("running", Severity.INFO, order=130, when=When.ALWAYS)
def running(snapshot: Snapshot) -> Findings:
    """The stream is running, or an operation on it is in progress.

    Condition: a process holds the lease of the stream.
    Effect: marks and files change while a process writes, so nothing else is compared until it has ended.
    How to confirm: `slackwater status STREAM` shows the host and the process that hold the lease.
    Remedy: nothing; `slackwater stop STREAM` ends a run after its batch.
    Safety: yes; the stopped run finishes and commits its batch.
    References: docs/decisions/0013-lease.md
    """
    if snapshot.holder is not None:
        yield Found("running" if snapshot.holder == "run" else f"{snapshot.holder} is in progress")


@rule("new", Severity.INFO, order=300, when=When.IN_ORDER)
def new(snapshot: Snapshot) -> Findings:
    """No batch has been planned yet.

    Condition: the checkpoint and the ledger have no batch of the stream.
    Effect: none; the first batch will be batch 0.
    How to confirm: `slackwater inspect STREAM` shows an empty checkpoint.
    Remedy: `slackwater run FILE`.
    Safety: yes.
    References: docs/decisions/0050-one-snapshot-one-number-line.md
    """
    if snapshot.marks.planned < 0:
        yield Found("no batch has been planned yet", next=run_command(snapshot.stream))


@rule("start-refused", Severity.WARNING, order=259, risk="stuck", ends_with=FAILED, about="last-run")
def start_refused(snapshot: Snapshot) -> Findings:
    """The last start was refused.

    Condition: the current generation's last start failed before its query ran. The facts of the other findings are
    not repeated.
    Effect: the stream does not run; no row is lost or doubled.
    How to confirm: start it again: while the reason remains, the start is refused again and changes nothing.
    Remedy: follow the error's advice, then `slackwater run FILE`.
    Safety: each command of the error shows its effect before it changes anything.
    References: docs/decisions/0230-verdict.md, docs/decisions/0336-a-refused-start-changes-nothing.md
    """
    refused = snapshot.last_refusal
    if refused is None or refused.generation != snapshot.generation.number:
        return
    reason, *hints = (refused.reason or refused.failure_code or "").split("\n")
    again = run_command(snapshot.stream)
    advice = "; ".join(hints) or (f"remove the reason, then: {again}" if again else "remove the reason")
    yield Found(f"the last start was refused: {reason}", advice=advice)


@rule("failed", Severity.WARNING, order=260, risk="stuck", ends_with=FAILED, about="last-run")
def failed(snapshot: Snapshot) -> Findings:
    """The last run failed; a new run may succeed.

    Condition: the current generation's last run ended with an error that is not known to be permanent.
    Effect: the stream does not run; no row is lost or doubled.
    How to confirm: `slackwater ledger STREAM` shows the run with the error.
    Remedy: `slackwater run FILE`; if the machine caused the error, first fix it.
    Safety: yes; Spark continues at its last position.
    References: docs/decisions/0036-which-failures-are-tried-again.md
    """
    run = failed_run(snapshot)
    if run is not None and run.failure != "permanent":
        reason = f": {run.reason}" if run.reason else ""
        yield Found(f"the last run failed{reason}", goal="resume", next=run_command(snapshot.stream))


@rule("failed-permanently", Severity.WARNING, order=261, risk="stuck", ends_with=FAILED, about="last-run")
def failed_permanently(snapshot: Snapshot) -> Findings:
    """The last run failed, and the same run would fail again.

    Condition: the current generation's last run failed for a permanent reason: changed operators or sources,
    damaged state, a function that fails, a query that Spark does not accept.
    Effect: the stream does not run; no row is lost or doubled.
    How to confirm: `slackwater ledger STREAM` shows the run with the error.
    Remedy: correct the pipeline, then `slackwater run FILE`; if the state does not fit, `slackwater plan rebuild
    STREAM`.
    Safety: yes; a rebuild leaves the output unchanged and keeps the old checkpoint for the undo.
    References: docs/decisions/0036-which-failures-are-tried-again.md
    """
    run, stream = failed_run(snapshot), snapshot.stream
    if run is None or run.failure != "permanent":
        return
    meaning, goal = FAILURES.get(run.failure_code or "", FAILURES["unknown"])
    reason = f": {run.reason}" if run.reason else ""
    file = split_reference(stream.pipeline_file)[0] or "the pipeline"
    yield Found(
        f"the last run failed and would fail again: {meaning}{reason}",
        goal=goal,
        next=rebuild_command(snapshot) if goal else None,
        advice=None if goal else f"correct {file}, then run it: {run_command(stream)}",
    )


@rule("global-watermark", Severity.WARNING, order=412, risk="loss", about="query", from_plan=True)
def global_watermark(snapshot: Snapshot) -> Findings:
    """An operator of the query returns rows that the stateful operator behind it drops as late.

    Condition: an aggregation in update or complete mode is followed by another stateful operator, for which Spark's
    global watermark is too far ahead.
    Effect: results are silently too low, or rows are missing. Spark refuses such a query, unless
    `statefulOperator.checkCorrectness.enabled = false`: then it only logs a warning, and the stream runs with this
    finding.
    How to confirm: without the setting `spark.sql.streaming.statefulOperator.checkCorrectness.enabled` the start is
    refused with this code. See the guide's section "Limitation of global watermark".
    Remedy: use append mode with watermarks; or write the first result to an output that a second stream reads, with
    its own watermark.
    Safety: yes. To add missing rows, process everything again with `slackwater plan reset STREAM --from
    earliest`.
    References: docs/reference/conformance.md
    """
    if snapshot.profile is not None and snapshot.profile.late_in_chain:
        yield Found(
            "a stateful operator follows an operator that returns rows older than the query's watermark: it drops them "
            "as late, and Spark's check for this is switched off"
        )


@rule("several-watermarks", Severity.WARNING, order=410, risk="wrong", about="query", from_plan=True)
def several_watermarks(snapshot: Snapshot) -> Findings:
    """The query has several watermarks, and those after its newest batch are not recorded.

    Condition: the ledger lacks the watermarks after the newest committed batch: the Spark that ran it does not show
    them, or Slackwater did not run it.
    Effect: Spark keeps only the combined watermark over a restart: late rows may be counted, and windows may be
    written later.
    How to confirm: `slackwater inspect STREAM --operators` shows the operators; look for several withWatermark in the
    pipeline.
    Remedy: nothing: Slackwater records them from its next batch on. Or give all inputs one watermark.
    Safety: a changed watermark changes which rows are late; `slackwater check FILE` compares the code with
    the state.
    References: docs/decisions/0481-the-watermark-of-each-input.md
    """
    batch = snapshot.marks.committed
    if snapshot.forgets_inputs(batch, snapshot.profile):
        yield Found(
            f"the query has several watermarks, of which Spark keeps only the combined one over a restart, and those "
            f"after batch {batch} are not recorded: rows that an uninterrupted run drops as late may be counted, and "
            "windows may be written later"
        )


LOST = "rows of a batch that is interrupted are lost, and a restart or a rebuild cannot read them again"


@rule("source-not-fault-tolerant", Severity.WARNING, order=415, risk="loss", about="query", from_plan=True)
def source_not_fault_tolerant(snapshot: Snapshot) -> Findings:
    """The query reads a source that cannot serve rows again.

    Condition: a source is a socket, which is for tests only and not fault-tolerant (programming guide, section
    "Input Sources").
    Effect: the rows of an interrupted batch are lost; a restart or a rebuild cannot read them again.
    How to confirm: look for `.format("socket")` in the pipeline.
    Remedy: read from files or Kafka; for a test start the stream under a new name.
    Safety: yes. A different source makes a new stream, which needs a new name and a new output.
    References: docs/reference/conformance.md
    """
    sources = snapshot.profile.sources if snapshot.profile is not None else ()
    for name in sources:
        if not kind_described(name).serves_again:
            yield Found(f"source {name} is not fault-tolerant: {LOST}")
