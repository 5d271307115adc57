"""How much of a checkpoint to read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How much to read. ``batch`` shows the operators as they were then; ``state`` loads state and counts its rows."""

    batch: int | None = None
    state: bool = False
    source_files: bool = False
