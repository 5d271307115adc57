"""What a program is given in place of its queries while it is read, and how a program that supervises them ends.

Such a program waits for its queries in a loop, or restarts those that have ended. None of them runs here, so that the
loop would have no end.
"""

from __future__ import annotations

import threading
import time
import traceback
import uuid
from collections.abc import Callable
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

import structlog

from slackwater.runtime.application import launch
from slackwater.runtime.application.refusals import calling_line

REPEATS_MAX = 100
"""A loop over days or attempts is shorter."""
REPEATED_S_MAX = 10.0
"""A program that waits for the first batch of a query gives up only later, or never."""
_ASKED = frozenset(
    {
        "awaitTermination",
        "exception",
        "isActive",
        "lastProgress",
        "processAllAvailable",
        "recentProgress",
        "status",
    }
)
log = structlog.get_logger(__name__)


def nothing(*_: object) -> None:
    """In place of a ``stop``."""


class NotStarted(SimpleNamespace):
    """A query that has ended at once, with nothing to process. ``asked`` is called with what is asked of its state."""

    def __init__(self, name: str | None, asked: Callable[[str], None]) -> None:
        identifier = str(uuid.uuid4())
        super().__init__(
            name=name,
            id=identifier,
            runId=identifier,
            isActive=False,
            lastProgress=None,
            recentProgress=[],
            status={"message": "not started", "isDataAvailable": False, "isTriggerActive": False},
            awaitTermination=lambda timeout=None: None if timeout is None else True,
            processAllAvailable=nothing,
            stop=nothing,
            exception=nothing,
            explain=nothing,
            _asked=asked,
        )

    def __getattribute__(self, name: str) -> Any:
        """An attribute, which the program may ask for again and again."""
        if name in _ASKED:
            super().__getattribute__("_asked")(name)
        return super().__getattribute__(name)


class Supervision:
    """Ends a program that asks for one query, or starts it, again and again from the same lines.

    ``loops`` are those that are known from when the program was read before, which end at once; what is found is added.
    """

    def __init__(self, loops: set[object]) -> None:
        self._loops = loops
        self._seen: dict[object, tuple[int, float]] = {}

    def restart(self) -> None:
        """The program comes to something new."""
        self._seen.clear()

    def noticed(self, what: str, name: str = "") -> None:
        """The program starts this query, or asks for it. Raises SystemExit where it does nothing else any more."""
        calls = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(None))
        loop = (what, name, tuple(takewhile(lambda call: call[0] != launch.__file__, calls)))
        now = time.monotonic()
        count, first = self._seen.get(key := (threading.get_ident(), loop), (0, now))
        self._seen[key] = (count + 1, first)
        if count >= REPEATS_MAX or now - first >= REPEATED_S_MAX:
            log.warning(
                "the program waits for its queries in a loop: what it does after it is not read", where=calling_line()
            )
            self._loops.add(loop)
        if count and loop in self._loops:
            raise SystemExit(0)
