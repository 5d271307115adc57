"""Holds and renews the leases of a run's streams, and notices a lost lease."""

import threading
from collections.abc import Callable, Sequence
from typing import Self

import structlog

from slackwater.core.errors import LeaseHeld, SlackwaterError
from slackwater.ledger.home import Home
from slackwater.ledger.lease import EXPIRES_S, JVM_WAIT_S, Lease, Seen, seen, wait_until_free
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.sqlite import Say

# Several heartbeats in a row may fail before a holder on another host counts as dead.
HEARTBEAT_S = EXPIRES_S / 6

log = structlog.get_logger(__name__)


class LeaseKeeper:
    """Takes all leases of some streams, by full name, or none, after waiting for a killed driver's JVM to exit. With
    ``refuse`` it takes the free leases: ``refuse`` gets the stream and the error, and raises it or returns.
    """

    def __init__(
        self,
        streams: Sequence[str],
        home: Home,
        ledger: Ledger,
        purpose: str,
        say: Say,
        *,
        refuse: Callable[[str, SlackwaterError], None] | None = None,
    ) -> None:
        self._streams = streams
        self._home = home
        self._ledger = ledger
        self._purpose = purpose
        self._say = say
        self._refuse = refuse
        self._leases: list[Lease] = []
        self._before: dict[str, Seen] = {}
        self._closing = threading.Event()
        # A daemon: its heartbeats must not keep a process alive whose main thread has ended.
        self._thread = threading.Thread(target=self._beat, name="slackwater-heartbeat", daemon=True)
        self.lost: LeaseHeld | None = None

    def __enter__(self) -> Self:
        # Before the last lease is taken: the wait for a killed driver's JVM is longer than a lease lasts.
        self._thread.start()
        try:
            # Of all at first: those of one dead host are then watched together.
            self._before = {stream: seen(self._ledger, stream) for stream in self._streams}
            for stream in self._streams:
                self._take(stream)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def release(self, stream: str) -> None:
        """Release a stream, by full name, before the others: nothing more is written to it."""
        leaving = [lease for lease in self._leases if lease.record.stream == stream]
        self._leases = [lease for lease in self._leases if lease not in leaving]
        _release(leaving)

    def add_jvm(self, pid: int) -> None:
        """Add a JVM, which writes and so must exit before the next holder may write."""
        for lease in self._leases:
            lease.add_jvm(pid)

    def fence(self, stream: str) -> int:
        return next(lease.fence for lease in self._leases if lease.record.stream == stream)

    def _take(self, stream: str) -> None:
        try:
            wait_until_free(self._ledger, stream, wait_s=JVM_WAIT_S, say=self._say, before=self._before[stream])
            pipeline, _, name = stream.partition("/")
            folder = self._home.stream_folder(pipeline, name)
            self._leases.append(Lease.acquire(self._ledger, stream, folder, self._purpose))
        except SlackwaterError as error:
            if self._refuse is None:
                raise
            self._refuse(stream, error)

    def _beat(self) -> None:
        while not self._closing.wait(HEARTBEAT_S):
            for lease in self._leases:
                try:
                    lease.heartbeat()
                except LeaseHeld as error:
                    if lease not in self._leases:
                        # Released meanwhile: this stream was refused.
                        continue
                    self.lost = error
                    return
                except SlackwaterError as error:
                    # The ledger may be unreachable for a while; the lease is held until another process takes it.
                    log.warning("a heartbeat was not recorded", error=str(error))

    def _end(self) -> None:
        self._closing.set()
        self._thread.join(timeout=HEARTBEAT_S)
        _release(self._leases)
        self._leases = []


def _release(leases: Sequence[Lease]) -> None:
    for lease in leases:
        try:
            lease.release()
        except SlackwaterError as error:
            # A lease that could not be released is free as soon as this process and its JVM have exited.
            log.warning("a lease was not released", error=str(error))
