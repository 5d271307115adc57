"""Command lines run as a user runs them: started, waited for by what they do, signalled, and checked to have exited."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from slackwater.ledger.lease import is_alive, start_time
from tests.support.killing import children_of

LOOK_EVERY_S = 0.02
WAIT_S = 120.0


def descendants(pid: int) -> dict[int, int]:
    """The living descendants of a process, as process id to start time."""
    found: dict[int, int] = {}
    for child in children_of(pid):
        started = start_time(child)
        if started is not None:
            found |= {child: started} | descendants(child)
    return found


def hear_interrupts() -> None:
    """A shell starts what it puts into the background with Ctrl-C ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def accepted(listening: socket.socket) -> int:
    """Accept and close the connections that wait at a port, and return their number."""
    listening.setblocking(False)
    count = 0
    with suppress(BlockingIOError):
        while True:
            listening.accept()[0].close()
            count += 1
    return count


class Command:
    """``slackwater ...`` in a session of its own, its output in a file. Kills all it started when the test ends."""

    def __init__(self, arguments: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None) -> None:
        hear_interrupts()
        self.log_file = folder / f"log-{time.monotonic_ns()}.txt"
        self._seen: dict[int, int] = {}
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "slackwater", *arguments],
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        self.pid = self.process.pid

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def jvms(self) -> list[int]:
        return [pid for pid in self.refresh() if pid in children_of(self.pid)]

    def refresh(self) -> dict[int, int]:
        """Every process seen below this one so far; those of a killed parent are no longer found from it."""
        self._seen |= descendants(self.pid)
        return self._seen

    def wait_for(self, happened: Callable[[], bool], what: str, wait_s: float = WAIT_S) -> None:
        """Wait for progress. Fails, with all output of the command, if it ends before or takes too long."""
        deadline = time.monotonic() + wait_s
        while not happened():
            assert self.process.poll() is None, f"ended with {self.process.returncode} before {what}:\n{self.log}"
            assert time.monotonic() < deadline, f"not within {wait_s:g} s: {what}:\n{self.log}"
            time.sleep(LOOK_EVERY_S)
        self.refresh()

    def signal_group(self, number: signal.Signals) -> None:
        """Signal the whole process group, as a terminal, ``timeout`` and service managers do."""
        self.refresh()
        os.killpg(self.pid, number)

    def end(self, wait_s: float = WAIT_S) -> int:
        try:
            return self.process.wait(wait_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"did not end within {wait_s:g} s:\n{self.log}") from None

    def alive(self) -> list[int]:
        return [pid for pid, started in self.refresh().items() if is_alive(pid, started)]

    def gone_within(self, wait_s: float) -> bool:
        deadline = time.monotonic() + wait_s
        while self.alive() and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        return not self.alive()

    def kill(self) -> None:
        """End everything silently, and at one moment: a JVM that outlives its Python goes on with the next batch."""
        for pid in self.alive():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        if self.process.poll() is None:
            self.process.kill()
        for pid in self.alive():
            with suppress(ProcessLookupError):  # Its parent has taken it along in between.
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        assert self.gone_within(20), f"processes {self.alive()} outlive kill -9"
