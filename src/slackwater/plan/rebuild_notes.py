"""What to check in a rebuild before it is approved."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.diagnose.words import batch_range
from slackwater.model.plan import ReplaySettings
from slackwater.model.profile import QueryProfile
from slackwater.model.snapshot import Snapshot
from slackwater.plan.contributing import StateBounds

USUAL = {
    ("spark.sql.ansi.enabled", "true"),
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.session.timeZone", "Etc/UTC"),
}
"""Settings that most runs have; they are recorded and used, and not worth a line."""


def notes_of(
    snapshot: Snapshot,
    *,
    target: int,
    asked: int | None,
    first: int,
    pending: int | None,
    state: StateBounds,
    code_differs: bool,
    settings: Sequence[ReplaySettings],
) -> tuple[str, ...]:
    """Sentences, the most important first."""
    return (
        *_about_the_line(snapshot, target, asked, pending),
        *_about_the_state(target, first, state, code_differs=code_differs),
        *_about_settings(settings),
    )


def risks_of(snapshot: Snapshot, query: QueryProfile | None, environment: Sequence[str]) -> tuple[str, ...]:
    """What may differ from an uninterrupted run although the plan is applied as it is."""
    profile = query or snapshot.profile
    risks: list[str] = []
    if profile is not None and len(profile.watermark_delays_ms) > 1:
        risks.append(
            "several watermarks: Spark keeps only the combined one over a restart, so the result equals that of a "
            "clean restart by Spark, which can count rows that an uninterrupted run drops as late"
        )
    if environment:
        risks.append(
            f"the pipeline reads the environment ({', '.join(environment)}): apply needs the values that the runs had"
        )
    return tuple(risks)


def _about_the_line(snapshot: Snapshot, target: int, asked: int | None, pending: int | None) -> list[str]:
    marks = snapshot.marks
    notes: list[str] = []
    if not snapshot.checkpoint_present:
        notes.append("the checkpoint does not exist; the ranges come from the ledger")
    if asked is None and marks.written is not None and marks.written > target:
        unknown = batch_range(target + 1, marks.written)
        notes.append(f"the sink holds {unknown}, whose range is not recorded: it is cut back to batch {target}")
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


def _about_the_state(target: int, first: int, state: StateBounds, *, code_differs: bool) -> list[str]:
    notes: list[str] = []
    if target < 0:
        return notes
    if state.stateful and state.retention_ms is None:
        notes.append("how long rows matter is unknown for this query: everything from batch 0 is replayed")
    elif state.stateful and code_differs:
        notes.append(
            "some recorded batches ran with other code, so their recorded event times may not hold for this code: "
            f"everything from batch {first} is replayed"
        )
    if first > target:
        notes.append("the query keeps no state: nothing is read again")
    return notes


def _about_settings(settings: Sequence[ReplaySettings]) -> list[str]:
    notes = []
    for group in settings:
        shown = [f"{key}={value}" for key, value in sorted((group.settings or {}).items()) if (key, value) not in USUAL]
        if shown:
            what = batch_range(group.first, group.last)
            notes.append(f"settings that {what} ran with, and will be replayed under: {', '.join(shown)}")
    return notes
