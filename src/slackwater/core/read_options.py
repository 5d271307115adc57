"""How much of a checkpoint to read."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.core.units import GIB, MIB


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The most bytes taken of one file, and the most that it may decompress to; a larger file counts as damaged.

    ``log_entry`` holds for every file that is not named otherwise, ``compacted_log`` for the ``.compact`` entries of
    file sources and file sinks, ``archive`` for all small files in a RocksDB zip together, ``state`` for the state of
    one store in one partition. ``surplus`` is how much more than 32 times their size all files may decompress to.
    """

    log_entry: int = 64 * MIB
    compacted_log: int = GIB
    archive: int = 256 * MIB
    state: int = 4 * GIB
    surplus: int = 256 * MIB

    @classmethod
    def all(cls, limit: int) -> ReadLimits:
        """The same limit for every kind of file."""
        return cls(limit, limit, limit, limit, limit)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How much to read. ``batch`` shows the operators as they were then; ``state`` loads state and counts its rows."""

    batch: int | None = None
    state: bool = False
    source_files: bool = False
    limits: ReadLimits = field(default_factory=ReadLimits)
