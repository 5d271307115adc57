"""Which snapshots of an Iceberg table wrote the batches after a given one, and to which the table can go back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slackwater.errors import Refused
from slackwater.sinks.iceberg.metadata import Metadata, Snapshot, lineage


@dataclass(frozen=True, slots=True)
class Span:
    """The snapshots that go when the table goes back from ``head`` to ``target``, the newest first.

    ``None`` is the table before its first snapshot. ``own`` wrote batches of the stream; the rest are of other writers.
    """

    head: int | None
    target: int | None
    snapshots: tuple[Snapshot, ...]
    own: frozenset[int]

    def others(self) -> tuple[Snapshot, ...]:
        """Snapshots of other writers that changed rows, the newest first."""
        return tuple(one for one in self.snapshots if one.id not in self.own and one.changes_rows)


def span_after(newest: Metadata, older: Iterator[Metadata], stream: str, batch: int) -> Span:
    """The snapshots of batches above ``batch``. Raises Refused (``iceberg-expired``) where they are not kept."""
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
    if not (complete or identifier is None) or (target is not None and target not in newest.snapshots):
        raise Refused(
            "iceberg-expired",
            f"The Iceberg table no longer has the snapshot before batch {batch + 1}",
            where=newest.location,
            found=f"{len(newest.snapshots)} snapshots",
            hint="cut at a later batch; expire_snapshots and history.expire.max-snapshot-age-ms decide how long "
            "snapshots are kept",
        )
    return Span(newest.current, target, tuple(seen[:span]), frozenset(own))


def _is_before(newest: Metadata, identifier: int | None, snapshot: Snapshot | None, stream: str, batch: int) -> bool:
    """Whether this snapshot has no batch above ``batch``: by its marker, or by the mark that names it."""
    marker = snapshot.batch_of(stream) if snapshot is not None else None
    mark = newest.mark
    named = mark.batch if mark is not None and (mark.stream, mark.snapshot) == (stream, identifier) else None
    return any(number is not None and number <= batch for number in (marker, named))
