"""The processes of a command that was started, with the JVMs that it starts, for drills that kill them.

A process is its id and its start time, so that no signal ever reaches a stranger that was given the same id.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from slackwater.ledger.lease.lease import is_alive, start_time

JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Each JVM lives for less than a minute: without the second compiler it needs a third less of two cores' time."""
_PARENT = 1
"""Field 4 of ``/proc/<pid>/stat``, counted from the first after the command's name (proc(5))."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was alive when it was found."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """Whether this very process still runs; one that only waits to be buried does not."""
        return is_alive(self.pid, self.started)

    def send(self, signal_number: signal.Signals) -> None:
        """Send a signal, unless the process has exited."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal_number)


def process(pid: int) -> Process | None:
    """The living process of this id."""
    started = start_time(pid)
    return None if started is None else Process(pid, started)


def tree(pid: int) -> tuple[Process, ...]:
    """The process and all its descendants, parents first. A driver's JVM is a child of its Python process."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (parent := _parent(folder)) is not None:
            children.setdefault(parent, []).append(int(folder.name))
    found = [pid]
    for member in found:
        found.extend(children.get(member, ()))
    return tuple(member for member in map(process, found) if member is not None)


def send_all(processes: tuple[Process, ...], signal_number: signal.Signals) -> None:
    """Send a signal to each, in this order."""
    for member in processes:
        member.send(signal_number)


def wait_until_gone(processes: tuple[Process, ...], wait_s_max: float) -> bool:
    """Whether all of them exited within this time."""
    deadline = time.monotonic() + wait_s_max
    while any(member.alive for member in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _parent(folder: Path) -> int | None:
    try:
        stat = (folder / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name of a command may contain blanks and parentheses.
    return int(stat.rpartition(")")[2].split()[_PARENT])
