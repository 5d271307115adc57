"""Tracks long operations on remote stores, so that commands can show them."""

import itertools
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Report = Callable[[str, int], None]
"""Shows a location and the seconds waited for it."""
SHOWN_AFTER_S = 4.0
SHOWN_AGAIN_S = 10.0
_LOOKED_AT_EACH_S = 0.5


class Waits:
    """The running operations with location and start; a thread checks them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._running: dict[int, tuple[str, float]] = {}
        self._keys = itertools.count()
        self._report: Report | None = None
        self._shown_s = -SHOWN_AGAIN_S
        self._is_watched = False

    def report_to(self, report: Report | None) -> None:
        self._report = report

    @contextmanager
    def waiting_for(self, location: str) -> Iterator[None]:
        key = next(self._keys)
        self._running[key] = (location, self._clock())
        if self._report is not None and not self._is_watched:
            self._is_watched = True
            start_new_thread(self._watch, ())
        try:
            yield
        finally:
            del self._running[key]

    def look(self) -> None:
        """Report the longest running operation, at most once in ``SHOWN_AGAIN_S`` seconds."""
        now_s, report = self._clock(), self._report
        # A copy, as other threads start and end operations meanwhile.
        running = sorted(self._running.copy().values(), key=lambda one: one[1])
        if report is None or not running or now_s - self._shown_s < SHOWN_AGAIN_S:
            return
        location, started_s = running[0]
        if now_s - started_s >= SHOWN_AFTER_S:
            self._shown_s = now_s
            report(location, round(now_s - started_s))

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOKED_AT_EACH_S)
            # stderr may be closed, or be that of a test which has ended.
            with suppress(OSError, ValueError):
                self.look()


WAITS = Waits()
"""The calls of this process that wait for a store."""
