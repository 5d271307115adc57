"""What a cut of an Iceberg table takes out, and how a staged branch is swapped in; each is a recorded commit.

A cut makes an older snapshot current, and lowers the recorded batch in the same version, so no batch is skipped later.
A staged branch starts empty or at an older snapshot. A single metadata version makes its newest snapshot main, and
keeps the old snapshot on a second branch, so ``expire_snapshots`` deletes neither. No file is copied, moved or deleted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from slackwater.core.errors import Refused
from slackwater.core.sink import Others
from slackwater.sinks.common.changes import CutRecord, RecordFile, occupied
from slackwater.sinks.common.contract import SwapPart, uncuttable
from slackwater.sinks.iceberg.metadata import (
    MAIN,
    Metadata,
    MetadataChange,
    TableMark,
    TableSnapshot,
    change_of,
    lineage,
    property_of,
    written,
)


@dataclass(frozen=True, slots=True)
class IcebergSpan:
    """The snapshots between ``head`` and ``target``, newest first.

    ``None`` is before the first snapshot. ``own`` are the stream's; the rest are others'.
    """

    head: int | None
    target: int | None
    snapshots: tuple[TableSnapshot, ...]
    own: frozenset[int]

    def others(self) -> tuple[TableSnapshot, ...]:
        return tuple(one for one in self.snapshots if one.id not in self.own and one.changes_rows)


def span_after(newest: Metadata, older: Iterator[Metadata], stream: str, batch: int) -> IcebergSpan:
    span, complete = _known_after(newest, older, stream, batch)
    if not complete or (span.target is not None and span.target not in newest.snapshots):
        raise Refused(
            "iceberg-expired",
            f"The Iceberg table no longer has the snapshot before batch {batch + 1}",
            where=newest.location,
            found=f"{len(newest.snapshots)} snapshots",
            hint="cut at a later batch; expire_snapshots and history.expire.max-snapshot-age-ms decide how long "
            "snapshots are kept",
        )
    return span


def snapshots_after(newest: Metadata, older: Iterator[Metadata], stream: str, batch: int) -> frozenset[int]:
    return frozenset(snapshot.id for snapshot in _known_after(newest, older, stream, batch)[0].snapshots)


def check_alone(location: str, span: IcebergSpan) -> None:
    """Raises Refused if others changed rows since the first cut batch."""
    others = span.others()
    if others:
        raise uncuttable(
            location,
            "The batches cannot be cut out of the Iceberg table: another writer has changed it since, and going back "
            "to an older snapshot would take out its rows, too",
            f"snapshots of the stream after {span.target}",
            f"{written_by(others).text} of others: snapshot {others[0].id}",
        )


def _known_after(newest: Metadata, older: Iterator[Metadata], stream: str, batch: int) -> tuple[IcebergSpan, bool]:
    seen, own, span = list[TableSnapshot](), set[int](), 0
    target, complete = newest.current, False
    mark = newest.mark
    for identifier, snapshot in lineage(newest, older):
        number = snapshot.batch_of(stream) if snapshot is not None else None
        named = mark.batch if mark is not None and (mark.stream, mark.snapshot) == (stream, identifier) else None
        complete = complete or any(known is not None and known <= batch for known in (number, named))
        if complete or snapshot is None:
            break
        seen.append(snapshot)
        if number is not None:
            own.add(snapshot.id)
            span, target, complete = len(seen), snapshot.parent, number == batch + 1
    return IcebergSpan(newest.current, target, tuple(seen[:span]), frozenset(own)), complete or identifier is None


def others_in(newest: Metadata, older: Iterator[Metadata], stream: str | None) -> Others:
    """Other writers' rows, except those replaced by a complete-mode batch."""
    found, last, expired = list[TableSnapshot](), None, False
    for identifier, snapshot in lineage(newest, older):
        if snapshot is None:
            expired = identifier is not None
            break
        last = snapshot
        if stream is None or snapshot.batch_of(stream) is None:
            if _changes(snapshot):
                found.append(snapshot)
        elif _number(snapshot, "added-records") in {_number(snapshot, "total-records")} - {None}:
            break  # Nothing of what was in the table before is in it.
    known = written_by(found)
    if not expired:
        return known
    if last is None:
        return Others(None, sure=False)
    # The writers of the expired snapshots are unknown: only the rows from before the oldest known one are.
    before = _known(_number(last, "total-records")) - _known(_number(last, "added-records"))
    before += _known(_number(last, "deleted-records"))
    return known if before <= 0 else Others(before + _known(known.rows), known.files, known.commits, sure=False)


def written_by(snapshots: Sequence[TableSnapshot]) -> Others:
    rows = [_number(one, "added-records") for one in snapshots]
    files = [_number(one, "added-data-files") for one in snapshots]
    return Others(sum(map(_known, rows)), sum(map(_known, files)), len(snapshots))


def state_of(newest: Metadata, older: Iterator[Metadata]) -> str:
    """The newest snapshot with changed rows; compaction does not count."""
    for identifier, snapshot in lineage(newest, older):
        if snapshot is None or _changes(snapshot):
            return f"snapshot {identifier}"
    return "no snapshot"


def _changes(snapshot: TableSnapshot) -> bool:
    if not snapshot.changes_rows:
        return False
    counts = [_number(snapshot, name) for name in ("added-data-files", "deleted-data-files", "added-delete-files")]
    # A writer that counts nothing may have changed anything.
    return any(counts) or _number(snapshot, "total-records") is None


def _number(snapshot: TableSnapshot, name: str) -> int | None:
    text = str(snapshot.summary.get(name, ""))
    return int(text) if text.isdecimal() else None


def _known(number: int | None) -> int:
    return 0 if number is None else number


RECORD = RecordFile("iceberg.json", "slackwater.iceberg-backup/1", CutRecord, alone=True)


def check_kept(location: str, metadata: Metadata, snapshot: int | None) -> None:
    if snapshot is not None and snapshot not in metadata.snapshots:
        raise Refused(
            "iceberg-restore",
            "The Iceberg table no longer has the snapshot from before the operation, so that it cannot be restored",
            where=location,
            expected=f"snapshot {snapshot}",
            found=f"{len(metadata.snapshots)} other snapshots",
            hint="expire_snapshots has deleted its files; run the stream, which writes the batches again",
        )


def staged_branch(operation: str) -> str:
    return f"slackwater-staged-{operation}"


def replaced_branch(operation: str) -> str:
    """The branch with the state before the swap; missing if the table had no snapshots."""
    return f"slackwater-replaced-{operation}"


def replaced_mark(metadata: Metadata, operation: str) -> TableMark:
    return metadata.marks[property_of(replaced_branch(operation))]


def branch_state(metadata: Metadata, operation: str) -> SwapPart | None:
    """Which branch the operation has, never both; the mark's property shows that it is the operation's."""
    staged, replaced = staged_branch(operation), replaced_branch(operation)
    for branch in (staged, replaced):
        if branch in metadata.branches and property_of(branch) not in metadata.marks:
            raise occupied(metadata.location, operation, f"branch {branch} without the property of its batches")
    # By the property: where readers saw a table without snapshots before the swap, there is no such branch.
    if property_of(replaced) in metadata.marks:
        return "replaced"
    return "staged" if staged in metadata.branches else None


def start(metadata: Metadata, branch: str, mark: TableMark) -> MetadataChange:
    if mark.snapshot is not None:
        return change_of({branch: mark})
    # The same for each attempt, so that one which was interrupted leaves nothing that is not used.
    snapshot = int.from_bytes(sha256(branch.encode()).digest()[:8], "big") >> 1
    made = change_of({branch: replace(mark, snapshot=snapshot)})
    return made if snapshot in metadata.snapshots else replace(made, empty=snapshot)


def swap_in(metadata: Metadata, older: Iterator[Metadata], operation: str, stream: str) -> MetadataChange:
    """Make the staged branch visible; earlier runs can publish to neither."""
    staged = metadata.on(staged_branch(operation))
    epoch = max(epoch_of(metadata) + 1, epoch_of(staged))
    replaced = TableMark(stream, epoch_of(metadata), written(metadata, older, stream), metadata.current)
    now = TableMark(stream, epoch, written(staged, iter(()), stream), staged.current)
    return change_of({MAIN: now, staged_branch(operation): None, replaced_branch(operation): replaced})


def swap_back(metadata: Metadata, older: Iterator[Metadata], operation: str, stream: str) -> MetadataChange:
    """The change that makes the replaced branch main and the present main branch staged."""
    replaced, epoch = replaced_mark(metadata, operation), epoch_of(metadata) + 1
    staged = TableMark(stream, epoch, written(metadata, older, stream), metadata.current)
    now = TableMark(stream, epoch, replaced.batch, replaced.snapshot)
    return change_of({MAIN: now, replaced_branch(operation): None, staged_branch(operation): staged})


def check_own(metadata: Metadata, older: Iterator[Metadata], stream: str, swapped: int | None) -> None:
    """Raises Refused for foreign changes since ``swapped`` became current."""
    others = list[TableSnapshot]()
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


def epoch_of(metadata: Metadata) -> int:
    return metadata.mark.epoch if metadata.mark is not None else 0
