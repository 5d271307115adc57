"""Stages an Iceberg table's rows on a branch, then makes them visible.

A branch starts empty or at an older snapshot. A single metadata version then makes its newest snapshot main, and keeps
the old snapshot on a second branch, so ``expire_snapshots`` deletes neither. No file is copied, moved or deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from slackwater.core.errors import Refused
from slackwater.sinks.common.changes import occupied
from slackwater.sinks.iceberg.metadata import MAIN, Change, Mark, Metadata, Snapshot, lineage, property_of, written
from slackwater.sinks.iceberg.snapshots import Span, check_alone, written_by

State = Literal["staged", "replaced"]


@dataclass(frozen=True, slots=True)
class Branches:
    """An operation's staged and replaced branches, never both.

    The mark's property shows that a branch is the operation's.
    """

    operation: str

    @property
    def staged(self) -> str:
        return f"slackwater-staged-{self.operation}"

    @property
    def replaced(self) -> str:
        """The branch with the state before the swap; missing if the table had no snapshots."""
        return f"slackwater-replaced-{self.operation}"

    def replaced_mark(self, metadata: Metadata) -> Mark:
        return metadata.marks[property_of(self.replaced)]

    def state(self, metadata: Metadata) -> State | None:
        for branch in (self.staged, self.replaced):
            if branch in metadata.branches and property_of(branch) not in metadata.marks:
                raise occupied(
                    metadata.location, self.operation, f"branch {branch} without the property of its batches"
                )
        # By the property: where readers saw a table without snapshots before the swap, there is no such branch.
        if property_of(self.replaced) in metadata.marks:
            return "replaced"
        return "staged" if self.staged in metadata.branches else None


def start(metadata: Metadata, branch: str, mark: Mark) -> Change:
    snapshot = mark.snapshot
    if snapshot is not None:
        return Change({branch: snapshot}, {branch: mark})
    # The same for each attempt, so that one which was interrupted leaves nothing that is not used.
    snapshot = int.from_bytes(sha256(branch.encode()).digest()[:8], "big") >> 1
    mark = Mark(mark.stream, mark.epoch, mark.batch, snapshot)
    return Change({branch: snapshot}, {branch: mark}, None if snapshot in metadata.snapshots else snapshot)


def mark_after(metadata: Metadata, stream: str, after: int, span: Span | None) -> Mark:
    """The start of a branch with batches up to ``after``. Raises Refused if others wrote rows since.

    Without a span, before all batches.
    """
    if span is not None:
        check_alone(metadata.location, span)
    return Mark(stream, _epoch(metadata), after, None if span is None else span.target)


def swap_in(metadata: Metadata, older: Iterator[Metadata], branches: Branches, stream: str) -> Change:
    """Make the staged branch visible; earlier runs can publish to neither."""
    staged = metadata.on(branches.staged)
    epoch = max(_epoch(metadata) + 1, _epoch(staged))
    replaced = Mark(stream, _epoch(metadata), written(metadata, older, stream), metadata.current)
    now = Mark(stream, epoch, written(staged, iter(()), stream), staged.current)
    return Change(
        {MAIN: now.snapshot, branches.staged: None, branches.replaced: replaced.snapshot},
        {MAIN: now, branches.staged: None, branches.replaced: replaced},
    )


def swap_back(metadata: Metadata, older: Iterator[Metadata], branches: Branches, stream: str) -> Change:
    """The change that makes the replaced branch main and the present main branch staged."""
    replaced, epoch = branches.replaced_mark(metadata), _epoch(metadata) + 1
    staged = Mark(stream, epoch, written(metadata, older, stream), metadata.current)
    now = Mark(stream, epoch, replaced.batch, replaced.snapshot)
    return Change(
        {MAIN: now.snapshot, branches.replaced: None, branches.staged: staged.snapshot},
        {MAIN: now, branches.replaced: None, branches.staged: staged},
    )


def drop(branch: str) -> Change:
    return Change({branch: None}, {branch: None})


def check_own(metadata: Metadata, older: Iterator[Metadata], stream: str, swapped: int | None) -> None:
    """Raises Refused for foreign changes since ``swapped`` became current."""
    others = list[Snapshot]()
    for identifier, snapshot in lineage(metadata, older):
        if identifier == swapped and others:
            found = f"{written_by(others).text} of others: snapshot {others[0].id}"
            raise conflict(metadata.location, "snapshots of the stream", found)
        if identifier == swapped:
            return
        if snapshot is None:
            break
        if snapshot.batch_of(stream) is None and snapshot.changes_rows:
            others.append(snapshot)
    raise conflict(metadata.location, f"a history from snapshot {swapped} on", f"snapshot {metadata.current}")


def conflict(location: str, expected: str, found: str) -> Refused:
    return Refused(
        "restore-conflict",
        "Another writer has changed the Iceberg table since the swap; going back would undo that",
        where=location,
        expected=expected,
        found=found,
        hint="find out in the table's history what has written to it (in Spark: SELECT * FROM TABLE.history), and "
        "go back to a snapshot with CALL CATALOG.system.rollback_to_snapshot",
    )


def moved(location: str) -> Refused:
    return Refused(
        "swap-moved",
        "Another writer has committed to the Iceberg table meanwhile",
        where=location,
        expected="no other writer until the command has ended",
        hint="find out in the table's history what has written to it (in Spark: SELECT * FROM TABLE.history), then run "
        "the command again",
    )


def _epoch(metadata: Metadata) -> int:
    return metadata.mark.epoch if metadata.mark is not None else 0
