"""A driver thread that copies each log entry into the ledger as soon as Spark writes it.

The query's listener lags behind, so after a kill it misses batches; the watcher only misses entries since its last
turn, every tenth of a second. Errors of ledger or store must not reach the query.
"""

import threading
import time

import structlog

from slackwater.ledger.recording.log_copier import LogCopier

LOCAL_INTERVAL_S = 0.1
REMOTE_INTERVAL_S = 1.0
_SAY_AGAIN_S = 60.0
_STOP_WAIT_S = 30.0

_log = structlog.get_logger(__name__)


class Watcher:
    """Runs a ``LogCopier`` until stopped. ``errors`` counts failed passes, which are retried."""

    def __init__(self, copier: LogCopier, *, interval_s: float | None = None) -> None:
        self.copied = 0
        self.errors = 0
        self._copier = copier
        self._interval_s = interval_s or (REMOTE_INTERVAL_S if copier.is_remote else LOCAL_INTERVAL_S)
        self._stopping = threading.Event()
        self._said: tuple[str, float] | None = None
        # A driver that ends must not wait for a database that does not answer.
        self._thread = threading.Thread(target=self._run, name="ledger-watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Make a last pass. Returns even if the ledger hangs: the next start catches up."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_WAIT_S)

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            self._pass()
        self._pass()

    def _pass(self) -> None:
        try:
            self.copied += self._copier.copy()
        except Exception as error:  # noqa: BLE001 - the outermost edge: whatever it is, the query continues
            self.errors += 1
            # Ten passes a second fail in the same way while a database is unreachable.
            now, words = time.monotonic(), str(error)
            if self._said is None or self._said[0] != words or now - self._said[1] >= _SAY_AGAIN_S:
                self._said = (words, now)
                _log.warning("the ledger was not updated", error=words, kind=type(error).__name__, errors=self.errors)
