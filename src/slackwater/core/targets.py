"""The end of kept batches, or the start or end of a range, as in Kafka's own tool that resets offsets.

Batch targets name a recorded batch, position targets a place in the sources.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LastWritten:
    """After the sink's newest batch."""


@dataclass(frozen=True, slots=True)
class AtBatch:
    """After a recorded batch."""

    batch: int


@dataclass(frozen=True, slots=True)
class Earliest:
    """Before everything that the source still has."""


@dataclass(frozen=True, slots=True)
class Latest:
    """After everything that the source has now."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """Before the first record or file of that time or later, in epoch milliseconds."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class ByDuration:
    """That long before now."""

    back_ms: int


@dataclass(frozen=True, slots=True)
class Shift:
    """The current position moved: back if negative."""

    count: int


@dataclass(frozen=True, slots=True)
class FromFile:
    """Offsets in a JSON file, named as typed; only the caller opens it."""

    file: str


BatchTarget = LastWritten | AtBatch
SourceTarget = Earliest | Latest | AtTime | Shift | FromFile
PositionTarget = SourceTarget | ByDuration
Target = BatchTarget | PositionTarget
