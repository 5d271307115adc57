"""Tells a service manager how a run is: systemd by its notifications, Kubernetes by ``/live``, ``/ready`` and a file.

systemd: ``READY=1`` when a stream starts to run, ``STATUS=`` with each change, and ``WATCHDOG=1`` when every running
stream has committed a batch or found no new data since the last notice (sd_notify(3)).
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.cli.common.console import report_error
from slackwater.core.errors import LeaseHeld, SlackwaterError

if TYPE_CHECKING:
    from slackwater.core.records import BatchRecord
    from slackwater.runtime.run.runner import RunDisplay


REPEATED_BY_A_RESTART = frozenset({2, 3, 4, 5, 6})
"""Exit codes of errors that a restart meets again. Not 9: a server that is missing can be back."""
_RUNS = frozenset({"running", "draining"})


class Supervised:
    """Passes reports on to ``display``. The recorder's thread, the runner's and the server's use it."""

    def __init__(self, display: RunDisplay) -> None:
        self._display = display
        self._one_at_a_time = threading.Lock()
        self._states: dict[str, str] = {}
        self._heard: set[str] = set()
        self._refusal: str | None = None

    def say(self, text: str) -> None:
        self._display.say(text)

    def state(self, stream: str, state: str) -> None:
        self._display.state(stream, state)
        with self._one_at_a_time:
            self._states[stream] = state
            # systemd ignores READY=1 of a service that has been started.
            ready = ["READY=1"] if state in _RUNS else []
            self._notify(f"STATUS={'; '.join(self._lines())}", "WATCHDOG=1", *ready)

    def batch(self, batch: BatchRecord) -> None:
        self._display.batch(batch)
        self._hear(batch.stream)

    def idle(self, stream: str) -> None:
        self._display.idle(stream)
        self._hear(stream)

    def restarted(self, stream: str) -> None:
        self._display.restarted(stream)

    def readiness(self) -> tuple[bool, str]:
        """Return whether every stream that was to be started runs or has finished, and the states as text."""
        with self._one_at_a_time:
            states, text = set(self._states.values()), self._refusal or "\n".join(self._lines())
        return bool(states & _RUNS) and states <= {"running", "finished"}, text

    def hold(self, error: SlackwaterError, file: Path) -> int:
        """Report a refused start, write it to ``file``, wait for SIGTERM or Ctrl-C, and return the exit code."""
        report_error(error)
        self._refusal = f"{error.code}: {error}" + (f"\nhint: {error.hint}" if error.hint else "")
        file.write_text(f"{self._refusal}\n")
        self._notify(f"STATUS=refused: {error.code}")
        self.say("held: a restart would be refused again; SIGTERM ends this process")
        ended = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        ended.wait()
        return error.exit_code

    def _lines(self) -> list[str]:
        return [f"{stream} {state}" for stream, state in self._states.items()]

    def _hear(self, stream: str) -> None:
        with self._one_at_a_time:
            self._heard.add(stream)
            if self._heard >= {name for name, state in self._states.items() if state in _RUNS}:
                self._heard.clear()
                self._notify("WATCHDOG=1")

    def _notify(self, *notice: str) -> None:
        # The protocol is one datagram: the packages for it have had no release for years or need a compiler.
        address = os.environ.get("NOTIFY_SOCKET")
        if not address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            try:
                sender.connect(address.replace("@", "\0", 1) if address.startswith("@") else address)
                sender.send("\n".join(notice).encode())
            except OSError as error:
                self._display.say(f"systemd was not notified: {error}")


def is_repeated(error: SlackwaterError) -> bool:
    """Return whether a restart would be refused for the same reason. A lease ends by itself."""
    return error.exit_code in REPEATED_BY_A_RESTART and not isinstance(error, LeaseHeld)
