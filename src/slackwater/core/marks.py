from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NONE_YET = -1


@dataclass(frozen=True, slots=True)
class Marks:
    """Batch ids, -1 for none yet, ``None`` for unknown.

    planned: the newest with a fixed source range (``offsets/``); committed: the newest that Spark has finished
    (``commits/``); state: the newest loadable everywhere; written: the newest that all outputs show; pending_no_data:
    the pending no-data batch, which a restart forgets (``checkpoint/no_data_batch.py``).
    """

    planned: int = NONE_YET
    committed: int = NONE_YET
    state: int | None = None
    written: int | None = None
    pending_no_data: int | None = None

    @property
    def next_batch(self) -> int:
        return self.planned + 1 if self.committed == self.planned else max(self.planned, 0)

    @property
    def next_is_planned(self) -> bool:
        return self.committed != self.planned


def written_by_all(marks: Iterable[int | None]) -> int | None:
    shown = tuple(marks)
    known = [mark for mark in shown if mark is not None]
    return min(known) if known and len(known) == len(shown) else None
