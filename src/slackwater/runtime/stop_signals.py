"""Ctrl-C and SIGTERM as requests: the first asks for a drain, the second for a stop at once.

A third one interrupts a stop that hangs, because of a batch that cannot be interrupted.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
BREAK_OFF_AT = 3


class StopSignals:
    """Counts the signals while it is open, and restores the previous handlers at the end.

    Opened after the Spark session: PySpark sets a handler of its own that cancels all jobs.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    @property
    def at_once(self) -> bool:
        """Whether there were two signals or more."""
        return self.count > 1

    def __enter__(self) -> Self:
        # Python takes signals in its main thread only; a run elsewhere is stopped through the ledger.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._count) for number in STOP_SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _count(self, number: int, _frame: FrameType | None) -> None:
        self.count, self.last = self.count + 1, number
        if self.count >= BREAK_OFF_AT:
            raise KeyboardInterrupt
