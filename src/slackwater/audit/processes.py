"""Processes of a command with their JVMs, for drills that kill them.

A process is its id and start time, so that no signal reaches a reused id.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from slackwater.ledger.lease import is_alive, start_time

JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Each JVM lives for less than a minute: without the second compiler it needs a third less of two cores' time."""
_PARENT = 1
"""Field 4 of ``/proc/<pid>/stat``, counted from the first after the command's name (proc(5))."""


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """Whether this very process runs; a zombie does not."""
        return is_alive(self.pid, self.started)

    def send(self, signal_number: signal.Signals) -> None:
        """Does nothing if the process has exited."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal_number)


def process(pid: int) -> Process | None:
    started = start_time(pid)
    return None if started is None else Process(pid, started)


def tree(pid: int) -> tuple[Process, ...]:
    """Parents first. A driver's JVM is a child of its Python process."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (parent := _parent(folder)) is not None:
            children.setdefault(parent, []).append(int(folder.name))
    found = [pid]
    for member in found:
        found.extend(children.get(member, ()))
    return tuple(member for member in map(process, found) if member is not None)


def send_all(processes: tuple[Process, ...], signal_number: signal.Signals) -> None:
    for member in processes:
        member.send(signal_number)


def wait_until_gone(processes: tuple[Process, ...], wait_s_max: float) -> bool:
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
