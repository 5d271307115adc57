"""The targets of goals: where a stream shall continue, or where a range starts or ends.

Named and understood as in Kafka's own tool that resets offsets. Batch targets name a recorded batch; position targets
name a place in what the sources hold, and each source has its own meaning for them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LastWritten:
    """After the newest batch that the sink holds."""


@dataclass(frozen=True, slots=True)
class AtBatch:
    """After a recorded batch, by its id."""

    batch: int


@dataclass(frozen=True, slots=True)
class Earliest:
    """Before everything that the source still has."""


@dataclass(frozen=True, slots=True)
class Latest:
    """After everything that the source has now."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """Before the first record, or file, of a time or later; milliseconds since 1970 in UTC."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class ByDuration:
    """The time that is this long before now."""

    back_ms: int


@dataclass(frozen=True, slots=True)
class Shift:
    """The current position moved: back by a negative count, forward by a positive one."""

    count: int


@dataclass(frozen=True, slots=True)
class FromFile:
    """The offsets in a JSON file. The name is as it was typed; only the caller opens it."""

    file: str


BatchTarget = LastWritten | AtBatch
SourceTarget = Earliest | Latest | AtTime | Shift | FromFile
PositionTarget = SourceTarget | ByDuration
Target = BatchTarget | PositionTarget
