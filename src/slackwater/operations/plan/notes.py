from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slackwater.core.program import QueryProfile
from slackwater.core.sink import BackfillDirectory, Cut, OutputTreatment, Swap, others_of
from slackwater.core.snapshot import Snapshot
from slackwater.core.units import batch_range, duration_text
from slackwater.operations.goals.goal import goal_named
from slackwater.operations.plan.contributing import StateBounds
from slackwater.operations.plan.plan import SourceStart

if TYPE_CHECKING:
    from slackwater.operations.actions.batches import ReplaySettings

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
    *,
    target: int,
    asked: int | None,
    first: int,
    pending: int | None,
    state: StateBounds,
    copied_from: int | None,
    code_differs: bool,
    settings: Sequence[ReplaySettings],
) -> tuple[str, ...]:
    """The notes as sentences, the most important first."""
    return (
        *_about_the_cut(snapshot, goal, target, asked),
        *_about_the_line(snapshot, target, pending),
        *(
            _about_the_state(snapshot, target, first, state, code_differs=code_differs)
            if copied_from is None
            else _about_the_copy(target, state, copied_from)
        ),
        *_about_settings(settings),
    )


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
    if replays and profile is not None:
        risks += _risks_of_replay(profile)
    if environment:
        risks.append(
            f"the pipeline reads the environment ({', '.join(environment)}): apply needs the values that the runs had"
        )
    return (*risks, *_risks_of_sink(snapshot, following, pending))


def risks_of_environment(changed: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{text}; apply replays with the environment that it is started in" for text in changed)


def _risks_of_replay(profile: QueryProfile) -> list[str]:
    risks = []
    if profile.by_order:
        risks.append(
            "the rows of a batch may be replayed in another order: the state is exact if "
            f"{', '.join(profile.by_order)} gives the same for any order, as --row-order any says"
        )
    if profile.reads_tables:
        risks.append(
            "the query joins or reads data that is not a stream: the replay reads it as it is now, and each batch read "
            "it as it was then"
        )
    return risks


def _risks_of_sink(snapshot: Snapshot, following: int, pending: int | None) -> list[str]:
    marks, output = snapshot.marks, snapshot.output
    never_ran = snapshot.checkpoint_present and pending is None and marks.planned < following
    if marks.written is not None or output.delivery is None or never_ran:
        return []
    risk = None
    if output.delivery.guarantee == "at-least-once":
        last = max(following, marks.committed, snapshot.recorded.committed)
        risk = (
            f"the sink does not show what it holds, and writes at least once: rows of {batch_range(following, last)} "
            "that were written before may be written twice"
        )
    elif output.batches_skipped and pending is None:
        risk = (
            f"the sink does not show whether it has batch {following}, whose range is not recorded: if it has, it "
            "skips the rows of the new one"
        )
    return [risk] if risk is not None else []


def _about_the_cut(snapshot: Snapshot, goal: str, target: int, asked: int | None) -> list[str]:
    written = snapshot.marks.written
    if asked is not None or written is None or written <= target:
        return []
    reason = goal_named(goal).why_cut(batch_range(target + 1, written), target)
    return [] if reason is None else [reason]


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


def _about_the_state(
    snapshot: Snapshot, target: int, first: int, state: StateBounds, *, code_differs: bool
) -> list[str]:
    notes: list[str] = []
    if target < 0:
        return notes
    if state.any_row_order:
        notes.append(ANY_ROW_ORDER)
    elif state.stateful and snapshot.stream.output_mode == "complete":
        notes.append("in complete mode every row still matters: everything from batch 0 is replayed")
    elif state.stateful and state.retention_ms is None and state.session_gap_ms is not None:
        notes.append(_about_sessions(target, first, state.session_gap_ms))
    elif state.stateful and state.retention_ms is None:
        notes.append("how long rows matter is unknown for this query: everything from batch 0 is replayed")
    elif state.stateful and code_differs:
        notes.append(
            "some recorded batches ran with other code, so their recorded event times may not hold for this code: "
            f"everything from batch {first} is replayed"
        )
    if first > target:
        notes.append(NOTHING_REPLAYED)
    return notes


def _about_sessions(target: int, first: int, gap_ms: int) -> str:
    if first == 0:
        return "event times show no pause that all open sessions are behind: everything from batch 0 is replayed"
    return (
        f"no row of a batch before {first} is in a session that is open at batch {target}: between them no event time "
        f"is within the gap of {duration_text(gap_ms)}"
    )


def _about_the_copy(target: int, state: StateBounds, copied_from: int) -> list[str]:
    if state.stateful and target >= 0:
        return [f"the state after batch {target} is that of generation {copied_from}: nothing is read again for it"]
    return [] if state.stateful else [NOTHING_REPLAYED]


def _about_settings(settings: Sequence[ReplaySettings]) -> list[str]:
    notes = []
    for group in settings:
        shown = [f"{key}={value}" for key, value in sorted((group.settings or {}).items()) if (key, value) not in USUAL]
        if shown:
            what = batch_range(group.first, group.last)
            notes.append(f"settings that {what} ran with, and will be replayed under: {', '.join(shown)}")
    return notes
