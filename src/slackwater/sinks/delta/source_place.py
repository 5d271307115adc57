"""Where a stream that reads a Delta table is, from the offset that Delta's source logs (``DeltaSourceOffset``)."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """The version that is read next and the newest file of it that was read, -1 for none.

    ``snapshot``: the source still reads all files of this version, as it found the table at its start.
    """

    table: str
    version: int
    index: int
    snapshot: bool

    def is_after(self, version: int) -> bool:
        """Whether something newer than ``version`` was read."""
        return self.version > version if self.snapshot else (self.version, self.index) > (version + 1, -1)


def source_place(offset: str) -> SourcePlace | None:
    """The place that an offset names, ``None`` for an offset of another source."""
    try:
        fields = json.loads(offset)
        return SourcePlace(
            str(fields["reservoirId"]),
            int(fields["reservoirVersion"]),
            int(fields["index"]),
            bool(fields["isStartingVersion"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
