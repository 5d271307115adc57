"""Facts of a snapshot for several rules, and the meaning of a run's failures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slackwater.core.checkpoint import NONE_YET, Damage
from slackwater.core.commands import rebuild_command, reset_command
from slackwater.core.facts import Finding
from slackwater.core.program import not_reproducible
from slackwater.core.records import RunRecord
from slackwater.core.snapshot import Snapshot

SHOWN = 3
STATE_FOLDER = "state/"


def newest_written(snapshot: Snapshot) -> int | None:
    """Of several outputs the newest batch; ``None`` if the sink shows nothing, or the checkpoint was lost."""
    if not snapshot.shown or snapshot.marks.planned < 0 <= snapshot.recorded.planned:
        return None
    return max(snapshot.shown)


def newest_allowed(snapshot: Snapshot) -> int:
    """The newest batch that a sink may have. An output with a planned batch that another lacks will skip it."""
    marks = snapshot.marks
    return marks.next_batch if marks.next_is_planned else marks.next_batch - 1


def range_differs(snapshot: Snapshot) -> bool:
    recorded, planned = snapshot.recorded.next_entry, snapshot.planned_entry
    return recorded is not None and planned is not None and recorded.offsets != planned.offsets


def is_known(snapshot: Snapshot) -> bool:
    return snapshot.recorded.planned >= 0 or snapshot.marks.planned >= 0


def location_of(snapshot: Snapshot, batch: int) -> str | None:
    return next((one.location for one in snapshot.outputs if one.written == batch), snapshot.output.location)


def lost_batch(snapshot: Snapshot) -> int | None:
    newest = max(snapshot.recorded.planned, snapshot.recorded.committed)
    return newest if snapshot.marks.planned < 0 <= newest else None


def state_held(snapshot: Snapshot) -> int:
    return NONE_YET if snapshot.marks.state is None else snapshot.marks.state


def state_is_lost(snapshot: Snapshot) -> bool:
    marks = snapshot.marks
    return snapshot.stateful and marks.planned >= 0 and state_held(snapshot) < marks.next_batch - 1


def damage(snapshot: Snapshot) -> list[Damage]:
    """The damage without missing state, which ``state-lost`` reports."""
    lost = state_is_lost(snapshot)
    return [
        one for one in snapshot.damage if not (lost and one.kind == "missing" and one.path.startswith(STATE_FOLDER))
    ]


def outputs_with_next(snapshot: Snapshot) -> list[str]:
    return [one.name for one in snapshot.outputs if one.written == snapshot.marks.next_batch]


def sink_kind(snapshot: Snapshot) -> str:
    return snapshot.stream.sink.get("kind") or "unknown"


def and_more(items: Sequence[object], shown: int) -> str:
    return f" and {len(items) - shown} more" if len(items) > shown else ""


def failed_run(snapshot: Snapshot) -> RunRecord | None:
    run = snapshot.last_run
    failed = run is not None and run.end == "failed" and run.generation == snapshot.generation.number
    return run if failed else None


FAILURES: Mapping[str, tuple[str, str | None]] = {
    "state-damaged": ("a state file of the checkpoint is damaged", "rebuild"),
    "state-missing": ("a state file that the next batch needs is missing, or an operator was added", None),
    "state-schema": ("the state does not fit the query any more", "rebuild"),
    "operator-changed": ("stateful operators were added or removed", "rebuild"),
    "source-added": ("the query has more sources than its checkpoint", None),
    "source-removed": ("the query has fewer sources than its checkpoint", None),
    "source-changed": ("a source of the query was replaced", None),
    "user-function": ("a function of the pipeline fails", None),
    "query-refused": ("Spark does not accept the query", None),
    "sink": ("the sink cannot write", None),
    "data-loss": ("a source no longer has rows that the next batch needs", None),
    "store-unreachable": ("a store or a server could not be reached", None),
    "unknown": ("the error is not known to be transient", None),
}
"""By ``failure_code``."""


def as_possible(finding: Finding, snapshot: Snapshot) -> Finding:
    """Replaces a rebuild that would be refused by a reset: no replay recomputes the state."""
    profile, rebuild = snapshot.profile, rebuild_command(snapshot)
    if profile is None or not_reproducible(profile, "any") is None:
        return finding
    if finding.next == rebuild:
        return replace(finding, goal="reset", next=reset_command(snapshot))
    if finding.advice is not None and finding.advice.endswith(rebuild):
        return replace(finding, advice=finding.advice.removesuffix(rebuild) + reset_command(snapshot))
    return finding
