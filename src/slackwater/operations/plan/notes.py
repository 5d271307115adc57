from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from slackwater.core.program import QueryProfile
from slackwater.core.sink import BackfillDirectory, Cut, OutputTreatment, Swap, others_of
from slackwater.core.snapshot import Snapshot
from slackwater.core.units import batch_range, duration_text
from slackwater.operations.goals.goal import goal_named
from slackwater.operations.plan.plan import SourceStart

if TYPE_CHECKING:
    from slackwater.operations.plan.context import Scope

NOTHING_REPLAYED = "the query keeps no state: no batch is replayed for it"
USUAL = {
    ("spark.sql.ansi.enabled", "true"),
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.session.timeZone", "Etc/UTC"),
    ("environment.TZ", "UTC"),
    ("environment.TZ", "Etc/UTC"),
    # Slackwater's own session on one machine.
    ("spark.databricks.delta.snapshotPartitions", "4"),
}
"""Settings of most runs, which are not worth a line."""


ANY_ROW_ORDER = (
    "the state of your own function is recomputed from the first batch on: this is exact if the function gives the "
    "same for any order of the rows in a batch, as --row-order any says"
)


def notes_of(
    snapshot: Snapshot,
    goal: str,
    scope: Scope,
    *,
    asked: int | None,
    code_differs: bool,
    settings: Sequence[tuple[str, Mapping[str, str]]],
) -> tuple[str, ...]:
    """The notes as sentences, the most important first; ``settings`` of batches."""
    target, state, written, notes = scope.target, scope.state, snapshot.marks.written, list[str | None]()
    if asked is None and written is not None and written > target:
        notes.append(goal_named(goal).why_cut(batch_range(target + 1, written), target))
    notes += _about_the_line(snapshot, target, scope.pending)
    if not scope.copied:
        notes += _about_the_state(snapshot, scope, code_differs=code_differs)
    elif not state.stateful:
        notes.append(NOTHING_REPLAYED)
    elif target >= 0:
        copied = f"generation {snapshot.generation.number}"
        notes.append(f"the state after batch {target} is that of {copied}: nothing is read again for it")
    for batches, values in settings:
        shown = [f"{key}={value}" for key, value in sorted(values.items()) if (key, value) not in USUAL]
        if shown:
            notes.append(f"settings that {batches} ran with, and will be replayed under: {', '.join(shown)}")
    return tuple(note for note in notes if note is not None)


def notes_of_start(starts: Sequence[SourceStart], last: int, output: OutputTreatment) -> tuple[str, ...]:
    treatment = {
        "keep": f"what the output has stays: rows that are read again are written twice; batches count from {last + 1}",
        "swap": "readers see what the output has until the new output has caught up; batches count from 0",
    }.get(output, "the output is emptied into the operation's backup; batches count from 0")
    return (*summaries_of(starts), "state and watermark start empty", treatment)


def notes_of_backfill(starts: Sequence[SourceStart], batch: int) -> tuple[str, ...]:
    return (
        *summaries_of(starts),
        f"all of it is batch {batch}, in one piece; its rows are added to what the output has",
        f"the stream keeps its position, and continues with batch {batch + 1} from there",
        f"the batches up to {batch} can no longer be replayed or rebuilt one by one afterwards, until an undo",
    )


def notes_of_directory(starts: Sequence[SourceStart], last: int, side: BackfillDirectory) -> tuple[str, ...]:
    return (
        *summaries_of(starts),
        f"all of it is one batch; its rows, as the query returns them, are written as {side.format} to {side.path}",
        "the rows are in the backfill directory only, and not in the output of the stream",
        "the range does not count as read: it can still be backfilled into the output",
        f"the stream is not changed: it continues with batch {last + 1} from its position",
    )


def summaries_of(starts: Sequence[SourceStart]) -> tuple[str, ...]:
    return tuple(start.summary for start in starts)


def risks_of_backfill(snapshot: Snapshot, environment: Sequence[str], batch: int) -> tuple[str, ...]:
    risks = ["streams that read this output get the rows as new ones: one with a watermark may drop them as late"]
    for output in snapshot.outputs:
        if output.delivery is not None and output.delivery.guarantee == "at-least-once":
            risks.append(f"{output.name} writes at least once: an apply that is killed can write rows of it twice")
        if not output.can_cut:
            risks.append(
                f"{output.name} cannot remove what batch {batch} wrote: undo is refused once it has been written"
                if output.batches_skipped
                else f"{output.name} cannot remove what batch {batch} wrote: its rows stay after an undo"
            )
    return (*risks, *risks_of_directory(environment))


def risks_of_directory(environment: Sequence[str]) -> tuple[str, ...]:
    if not environment:
        return ()
    return (f"the pipeline reads the environment ({', '.join(environment)}): apply needs the values of the runs",)


def risks_of_others(snapshot: Snapshot, change: Cut | Swap) -> tuple[str, ...]:
    """Rows to be removed that are not, or perhaps not, the stream's."""
    found = others_of(change)
    if not found.any:
        return ()
    what = f"{found.text} that others have written" if found.sure else f"{found.text}, perhaps written by others,"
    where = "with the old output" if isinstance(change, Swap) else "to the backup"
    return (f"{what} would go {where}: apply refuses it without --discard-others {snapshot.stream.name}",)


def risks_of_unmarked(snapshot: Snapshot) -> tuple[str, ...]:
    text = "rows that the output may have and its marker does not show stay: what is read again is written twice"
    return (f"{text}; apply refuses it without --confirm {snapshot.stream.name}",)


def risks_of(
    snapshot: Snapshot,
    query: QueryProfile | None,
    environment: Sequence[str],
    *,
    following: int,
    pending: int | None,
    kept: bool,
    replays: bool,
) -> tuple[str, ...]:
    """``following`` runs next, and ``pending`` if its recorded range is kept; ``kept``: the output keeps its part of
    it.
    """
    profile = query or snapshot.profile
    risks: list[str] = []
    if snapshot.forgets_inputs(following - 1, profile):
        risks.append(
            "several watermarks: Spark keeps only the combined one over a restart, and those after batch "
            f"{following - 1} are not recorded, so the result equals that of a clean restart by Spark, which can count "
            "rows that an uninterrupted run drops as late"
        )
    if kept and pending is not None and pending == snapshot.marks.written and snapshot.skips_unread:
        risks.append(
            f"the sink skips batch {pending} unread, which does not advance the watermark: rows late only by it may be "
            "counted"
        )
    if replays and profile is not None and profile.by_order:
        risks.append(
            "the rows of a batch may be replayed in a different order: the state is exact if "
            f"{', '.join(profile.by_order)} gives the same for any order, as --row-order any says"
        )
    if replays and profile is not None and profile.reads_tables:
        risks.append(
            "the query joins or reads data that is not a stream: the replay reads it as it is now, and each batch read "
            "it as it was then"
        )
    if environment:
        risks.append(
            f"the pipeline reads the environment ({', '.join(environment)}): apply needs the values that the runs had"
        )
    marks, output = snapshot.marks, snapshot.output
    never_ran = snapshot.checkpoint_present and pending is None and marks.planned < following
    if marks.written is not None or output.delivery is None or never_ran:
        return tuple(risks)
    if output.delivery.guarantee == "at-least-once":
        last = max(following, marks.committed, snapshot.recorded.committed)
        risks.append(
            f"the sink does not show what it holds, and writes at least once: rows of {batch_range(following, last)} "
            "that were written before may be written twice"
        )
    elif output.batches_skipped and pending is None:
        risks.append(
            f"the sink does not show whether it has batch {following}, whose range is not recorded: if it has, it "
            "skips the rows of the new one"
        )
    return tuple(risks)


def risks_of_environment(changed: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{text}; apply replays with the environment that it is started in" for text in changed)


def _about_the_line(snapshot: Snapshot, target: int, pending: int | None) -> list[str]:
    marks = snapshot.marks
    notes: list[str] = []
    if not snapshot.checkpoint_present:
        notes.append("the checkpoint does not exist; the ranges come from the ledger")
    if target < 0:
        notes.append("the stream restarts at batch 0, from where it first started")
    if pending is not None:
        notes.append(f"batch {pending} keeps its recorded range and is the next to run")
    later = target if pending is None else pending
    if marks.planned > later:
        several = marks.planned > later + 1
        verb = "were" if several else "was"
        notes.append(f"{batch_range(later + 1, marks.planned)} {verb} planned after that and will be planned again")
    return notes


def _about_the_state(snapshot: Snapshot, scope: Scope, *, code_differs: bool) -> list[str]:
    target, first, state, notes = scope.target, scope.first, scope.state, list[str]()
    unknown = state.stateful and state.retention_ms is None
    if target < 0:
        return notes
    if state.any_row_order:
        notes.append(ANY_ROW_ORDER)
    elif state.stateful and snapshot.stream.output_mode == "complete":
        notes.append("in complete mode every row still matters: everything from batch 0 is replayed")
    elif unknown and state.session_gap_ms is None:
        notes.append("how long rows matter is unknown for this query: everything from batch 0 is replayed")
    elif unknown and first == 0:
        notes.append("event times show no pause that all open sessions are behind: everything from batch 0 is replayed")
    elif unknown:
        notes.append(
            f"no row of a batch before {first} is in a session that is open at batch {target}: between them no event "
            f"time is within the gap of {duration_text(state.session_gap_ms or 0)}"
        )
    elif state.stateful and code_differs:
        notes.append(
            "some recorded batches ran with other code, so their recorded event times may not hold for this code: "
            f"everything from batch {first} is replayed"
        )
    if first > target:
        notes.append(NOTHING_REPLAYED)
    return notes
