"""Finds the snapshots of batches after a given batch, and other writers' rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slackwater.core.errors import Refused
from slackwater.core.sink import Others
from slackwater.sinks.iceberg.metadata import Metadata, Snapshot, lineage


@dataclass(frozen=True, slots=True)
class Span:
    """The snapshots between ``head`` and ``target``, newest first.

    ``None`` is before the first snapshot. ``own`` are the stream's; the rest are others'.
    """

    head: int | None
    target: int | None
    snapshots: tuple[Snapshot, ...]
    own: frozenset[int]

    def others(self) -> tuple[Snapshot, ...]:
        return tuple(one for one in self.snapshots if one.id not in self.own and one.changes_rows)


def span_after(newest: Metadata, older: Iterator[Metadata], stream: str, batch: int) -> Span:
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


def check_alone(location: str, span: Span) -> None:
    """Raises Refused if others changed rows since the first cut batch."""
    others = span.others()
    if others:
        raise Refused(
            "sink-uncuttable",
            "The batches cannot be cut out of the Iceberg table: another writer has changed it since, and going back "
            "to an older snapshot would take out its rows, too",
            where=location,
            expected=f"snapshots of the stream after {span.target}",
            found=f"{written_by(others).text} of others: snapshot {others[0].id}",
            hint="rebuild at the last written batch, which removes nothing",
        )


def _known_after(newest: Metadata, older: Iterator[Metadata], stream: str, batch: int) -> tuple[Span, bool]:
    seen, own, span = list[Snapshot](), set[int](), 0
    target, complete = newest.current, False
    for identifier, snapshot in lineage(newest, older):
        complete = complete or _is_before(newest, identifier, snapshot, stream, batch)
        if complete or snapshot is None:
            break
        seen.append(snapshot)
        number = snapshot.batch_of(stream)
        if number is not None:
            own.add(snapshot.id)
            span, target, complete = len(seen), snapshot.parent, number == batch + 1
    return Span(newest.current, target, tuple(seen[:span]), frozenset(own)), complete or identifier is None


def _is_before(newest: Metadata, identifier: int | None, snapshot: Snapshot | None, stream: str, batch: int) -> bool:
    marker = snapshot.batch_of(stream) if snapshot is not None else None
    mark = newest.mark
    named = mark.batch if mark is not None and (mark.stream, mark.snapshot) == (stream, identifier) else None
    return any(number is not None and number <= batch for number in (marker, named))


def others_in(newest: Metadata, older: Iterator[Metadata], stream: str | None) -> Others:
    """Other writers' rows, except those replaced by a complete-mode batch."""
    found, last = list[Snapshot](), None
    for identifier, snapshot in lineage(newest, older):
        if snapshot is None:
            return _unknown(found, last) if identifier is not None else written_by(found)
        last = snapshot
        if stream is None or snapshot.batch_of(stream) is None:
            if _changes(snapshot):
                found.append(snapshot)
        elif _number(snapshot, "added-records") in {_number(snapshot, "total-records")} - {None}:
            break  # Nothing of what was in the table before is in it.
    return written_by(found)


def written_by(snapshots: Sequence[Snapshot]) -> Others:
    rows = [_number(one, "added-records") for one in snapshots]
    files = [_number(one, "added-data-files") for one in snapshots]
    return Others(sum(map(_known, rows)), sum(map(_known, files)), len(snapshots))


def state_of(newest: Metadata, older: Iterator[Metadata]) -> str:
    """The newest snapshot with changed rows; compaction does not count."""
    for identifier, snapshot in lineage(newest, older):
        if snapshot is None or _changes(snapshot):
            return f"snapshot {identifier}"
    return "no snapshot"


def _changes(snapshot: Snapshot) -> bool:
    if not snapshot.changes_rows:
        return False
    counts = [_number(snapshot, name) for name in ("added-data-files", "deleted-data-files", "added-delete-files")]
    # A writer that counts nothing may have changed anything.
    return any(counts) or _number(snapshot, "total-records") is None


def _unknown(found: Sequence[Snapshot], last: Snapshot | None) -> Others:
    """Other writers' rows if the snapshots before ``last``, with their writers, have expired."""
    if last is None:
        return Others(None, sure=False)
    before = _known(_number(last, "total-records")) - _known(_number(last, "added-records"))
    before += _known(_number(last, "deleted-records"))
    known = written_by(found)
    if before <= 0:
        return known
    return Others(before + _known(known.rows), known.files, known.commits, sure=False)


def _number(snapshot: Snapshot, name: str) -> int | None:
    text = str(snapshot.summary.get(name, ""))
    return int(text) if text.isdecimal() else None


def _known(number: int | None) -> int:
    return 0 if number is None else number
