"""Counts how often a failed query is restarted, and how long to wait before each time."""

from __future__ import annotations

import time

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0


class Restarts:
    """At most ``most`` in a row; a committed batch resets the count."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._in_a_row = 0
        self._due_at = 0.0
        self.total = 0

    @property
    def left(self) -> bool:
        """Whether another restart is allowed."""
        return self._in_a_row < self._most

    @property
    def due(self) -> bool:
        """Whether the wait before the next start is over."""
        return time.monotonic() >= self._due_at

    def progressed(self) -> None:
        """A batch was committed since the last start."""
        self._in_a_row = 0

    def plan_next(self) -> str:
        """Count a restart and start its wait, which doubles each time. Returns both for a message."""
        wait_s = min(FIRST_WAIT_S * 2**self._in_a_row, LONGEST_WAIT_S)
        self.total += 1
        self._in_a_row += 1
        self._due_at = time.monotonic() + wait_s
        return f"restart {self._in_a_row} of {self._most} in {wait_s:.0f} s"
