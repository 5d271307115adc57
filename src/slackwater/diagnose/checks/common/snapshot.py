"""Facts of a snapshot that several rules compare, and what the failures of a run mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slackwater.core.checkpoint import Damage
from slackwater.core.commands import rebuild_command, reset_command
from slackwater.core.finding import Finding
from slackwater.core.marks import NONE_YET
from slackwater.core.profile import not_reproducible
from slackwater.core.records import RunRecord
from slackwater.core.snapshot import Snapshot

SHOWN = 3
STATE_FOLDER = "state/"


@dataclass(frozen=True, slots=True)
class Written:
    """The sink's marks next to the next batch. Of several outputs the newest shows what is ahead, the oldest what
    lacks.

    An output that has the planned batch, which another lacks, is not ahead: it will skip the batch.
    """

    oldest: int
    newest: int
    following: int
    next_is_planned: bool

    @property
    def is_ahead(self) -> bool:
        """Whether the sink has a batch that the checkpoint has not planned."""
        return self.newest > self.following or (self.newest == self.following and not self.next_is_planned)


def written(snapshot: Snapshot) -> Written | None:
    """What the sink shows; ``None`` where it shows nothing, or the checkpoint that it is compared with was lost."""
    marks = snapshot.marks
    if not snapshot.shown or marks.planned < 0 <= snapshot.recorded.planned:
        return None
    oldest = max(min(snapshot.shown), snapshot.generation.floor)
    return Written(oldest, max(snapshot.shown), marks.next_batch, marks.next_is_planned)


def range_differs(snapshot: Snapshot) -> bool:
    """Whether the next batch was recorded with other offsets than the checkpoint has planned it with."""
    recorded, planned = snapshot.recorded.next_entry, snapshot.planned_entry
    return recorded is not None and planned is not None and recorded.offsets != planned.offsets


def is_known(snapshot: Snapshot) -> bool:
    """Whether the ledger or the checkpoint has any batch of the stream."""
    return snapshot.recorded.planned >= 0 or snapshot.marks.planned >= 0


def location_of(snapshot: Snapshot, batch: int) -> str | None:
    """Where the output is that shows this batch as its newest."""
    return next((one.location for one in snapshot.outputs if one.written == batch), snapshot.output.location)


def lost_batch(snapshot: Snapshot) -> int | None:
    """The newest recorded batch, where the checkpoint holds none; else ``None``."""
    newest = max(snapshot.recorded.planned, snapshot.recorded.committed)
    return newest if snapshot.marks.planned < 0 <= newest else None


def state_held(snapshot: Snapshot) -> int:
    """The newest batch whose state can be loaded, -1 for none."""
    return NONE_YET if snapshot.marks.state is None else snapshot.marks.state


def state_is_lost(snapshot: Snapshot) -> bool:
    """Whether the next batch needs state that cannot be loaded."""
    marks = snapshot.marks
    return snapshot.stateful and marks.planned >= 0 and state_held(snapshot) < marks.next_batch - 1


def damage(snapshot: Snapshot) -> list[Damage]:
    """Damage of the checkpoint, without the missing state that ``state-lost`` reports with the batch that needs it."""
    lost = state_is_lost(snapshot)
    return [
        one for one in snapshot.damage if not (lost and one.kind == "missing" and one.path.startswith(STATE_FOLDER))
    ]


def outputs_with_next(snapshot: Snapshot) -> list[str]:
    """The outputs that have the next batch already."""
    return [one.name for one in snapshot.outputs if one.written == snapshot.marks.next_batch]


def sink_kind(snapshot: Snapshot) -> str:
    """The kind of the stream's sink."""
    return snapshot.stream.sink.get("kind") or "unknown"


def and_more(items: Sequence[object], shown: int) -> str:
    """What follows a list of which only the first are shown."""
    return f" and {len(items) - shown} more" if len(items) > shown else ""


def failed_run(snapshot: Snapshot) -> RunRecord | None:
    """The last run, if it failed on the generation in use; one that was switched in since has not failed."""
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
    "unknown": ("the error is not one of those that are known", None),
}
"""By ``failure_code``."""


def as_possible(finding: Finding, snapshot: Snapshot) -> Finding:
    """With a reset in place of a rebuild that would be refused: no replay recomputes what the operators keep."""
    profile, rebuild = snapshot.profile, rebuild_command(snapshot)
    if profile is None or not_reproducible(profile, "any") is None:
        return finding
    if finding.next == rebuild:
        return replace(finding, goal="reset", next=reset_command(snapshot))
    if finding.advice is not None and finding.advice.endswith(rebuild):
        return replace(finding, advice=finding.advice.removesuffix(rebuild) + reset_command(snapshot))
    return finding
