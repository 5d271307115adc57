"""What is known of a sink's output."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cut:
    """What cutting a sink back would take out of it: whole batches, their files (URIs) and bytes."""

    after: int
    batches: tuple[int, ...]
    files: tuple[str, ...]
    bytes: int
