"""Which processes of this host are alive. A process is its id *and* its start time: an id is given out again.

On Linux both come from ``/proc``. Elsewhere there is no start time, and an id that was recycled counts as alive, which
is the safe side: a lease is refused that could have been taken.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

from slackwater.core.records import Holder

UNKNOWN_START = 0
"""The start time if the operating system does not report it."""

_PROC = Path("/proc")
_GONE_STATES = frozenset("ZX")
"""Zombie and dead: such a process runs no code any more, but keeps its id until its parent has asked for its end."""
_STATE, _START_TIME = 0, 19
"""Fields 3 and 22 of ``/proc/<pid>/stat``, counted from the first after the command's name (proc(5))."""


def this_process() -> Holder:
    """This Python process as the holder of a lease; its JVM is not known yet."""
    pid = os.getpid()
    return Holder(socket.gethostname(), pid, start_time(pid) or UNKNOWN_START, pid_space=pid_space())


@cache
def pid_space() -> str:
    """What makes a process id meaningful: this boot of the kernel, and this container's process-id namespace.

    Two containers may have the same host name and run on the same kernel, and still not see each other's processes.
    """
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = (_PROC / "self/ns/pid").readlink()
    except OSError:
        return ""
    return f"{boot}/{namespace}"


def can_look_up(holder: Holder) -> bool:
    """Whether the holder's process ids are of this host, since its last boot, in this container."""
    return (holder.host, holder.pid_space) == (socket.gethostname(), pid_space())


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since the boot; ``None`` if it has exited."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        # A /proc mounted with hidepid does not show other users' processes; a signal still reaches them.
        return UNKNOWN_START if _answers(pid) else None
    # The command's name is in parentheses and may contain parentheses and spaces itself.
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in _GONE_STATES else int(fields[_START_TIME])


def is_alive(pid: int, started: int | None) -> bool:
    """Whether the process with this id and start time is alive."""
    now = start_time(pid)
    return now is not None and (now == started or UNKNOWN_START in {now, started or UNKNOWN_START})


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # OverflowError: larger than any process id
        return False
    except PermissionError:
        return True
    return True
