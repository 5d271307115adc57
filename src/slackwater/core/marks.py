"""The number line: marks on one line of batch ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NONE_YET = -1
"""The mark of a line that has no batch yet."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Every mark is a batch id, -1 where there is none yet, ``None`` where it is unknown.

    planned: newest batch whose source range is fixed (``offsets/``); committed: newest batch that Spark has finished
    (``commits/``); state: newest batch whose state can be loaded everywhere; written: newest batch the sink shows, and
    where it writes into several outputs, the newest that all of them show;
    pending_no_data: the pending no-data batch, which a restart forgets (``checkpoint/no_data_batch.py``).
    """

    planned: int = NONE_YET
    committed: int = NONE_YET
    state: int | None = None
    written: int | None = None
    pending_no_data: int | None = None

    @property
    def next_batch(self) -> int:
        """The batch Spark would run next: the planned one again if it is not committed, else the one after it."""
        return self.planned + 1 if self.committed == self.planned else max(self.planned, 0)

    @property
    def next_is_planned(self) -> bool:
        """Whether the range of the next batch is fixed already."""
        return self.committed != self.planned


def written_by_all(marks: Iterable[int | None]) -> int | None:
    """The newest batch that each of several outputs shows; ``None`` if one of them shows none."""
    shown = tuple(marks)
    known = [mark for mark in shown if mark is not None]
    return min(known) if known and len(known) == len(shown) else None
