"""Asks the ledger whether a lease is still held, where the next thing is a write that it allows.

The heartbeat notices a lost lease within seconds. A driver that was paused, by the system or with its machine, resumes
in the middle of a batch, before any heartbeat.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slackwater.core.errors import SlackwaterError
from slackwater.ledger.lease.lease import EXPIRES_S, lost

if TYPE_CHECKING:
    from slackwater.ledger.ledger import Ledger

_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_s() -> float:
    """Seconds that also pass while the machine is suspended, which those of ``time.monotonic`` do not on Linux."""
    return time.clock_gettime(_CLOCK)


@dataclass(slots=True)
class LeaseCheck:
    """A call raises ``LeaseHeld`` (``lease-lost``) unless the stream's lease has this fence number.

    A ledger that cannot be read is no reason to stop as long as the last answer is younger than what a lease needs to
    expire: no other process can have taken it. Later its error is raised.
    """

    ledger: Ledger
    stream: str
    fence: int
    _held_at: float = field(default_factory=now_s)

    def __call__(self) -> None:
        """Ask the ledger."""
        # The time before the question: an answer that comes late is not a new one.
        asked_at = now_s()
        try:
            lease = self.ledger.lease(self.stream)
        except SlackwaterError:
            # Half: the last heartbeat may be older than the last answer, and the write that follows takes time.
            if asked_at - self._held_at > EXPIRES_S / 2:
                raise
            return
        if lease is None or lease.fence != self.fence:
            raise lost(self.stream, self.fence, lease)
        self._held_at = asked_at
