"""The lease: who may write to a stream, with a heartbeat, and a fence number to reject late writers.

After ``kill -9`` of a Python driver its JVM runs for up to two more seconds, and was seen to commit a batch. So a
holder is dead only when both processes have exited. Must not happen: two holders at once; a lease taken from live
processes that can be looked up, however old its heartbeat.

The ledger's row decides. ``lease.json`` next to the checkpoints is a copy, for people and for a ledger recreated while
a holder is alive.

A process is its id *and* its start time, as ids are reused (``/proc`` on Linux). Elsewhere a reused id counts as alive,
the safe side.

A paused driver or machine resumes mid-batch before any heartbeat: ``LeaseCheck`` asks the ledger before each write.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, Self, get_args, get_type_hints

from slackwater.core.commands import command
from slackwater.core.errors import EnvironmentMissing, LeaseHeld, SlackwaterError
from slackwater.core.escaping import is_unicode
from slackwater.core.records import Holder, LeaseRecord, RunRecord
from slackwater.core.units import utc_text
from slackwater.ledger.sqlite import Say
from slackwater.storage.open import AnyLocation, open_read_store, open_write_store

if TYPE_CHECKING:
    from slackwater.ledger.ledger import Ledger


UNKNOWN_START = 0
"""The start time if the operating system does not report it."""

_PROC = Path("/proc")
_GONE_STATES = frozenset("ZX")
"""Zombie and dead: such a process runs no code, but keeps its id until its parent has asked for its end."""
_STATE, _START_TIME = 0, 19
"""Fields 3 and 22 of ``/proc/<pid>/stat``, counted from the field after the command's name (proc(5))."""


def this_process() -> Holder:
    """This Python process; its JVM is not known yet."""
    pid = os.getpid()
    return Holder(socket.gethostname(), pid, start_time(pid) or UNKNOWN_START, pid_space=pid_space())


@cache
def pid_space() -> str:
    """The boot of the kernel and this container's pid namespace. Containers may share host name and kernel without
    seeing each other's processes.
    """
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = (_PROC / "self/ns/pid").readlink()
    except OSError:
        return ""
    return f"{boot}/{namespace}"


def can_look_up(holder: Holder) -> bool:
    return (holder.host, holder.pid_space) == (socket.gethostname(), pid_space())


def start_time(pid: int) -> int | None:
    """The start time in clock ticks since boot; ``None`` if the process has exited."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        # A /proc mounted with hidepid does not show other users' processes; a signal still reaches them.
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):  # OverflowError: larger than any process id
            return None
        except PermissionError:
            return UNKNOWN_START
        return UNKNOWN_START
    # The command's name is in parentheses and may contain parentheses and spaces itself.
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in _GONE_STATES else int(fields[_START_TIME])


def is_alive(pid: int, started: int | None) -> bool:
    now = start_time(pid)
    return now is not None and (now == started or UNKNOWN_START in {now, started or UNKNOWN_START})


LEASE_FILE = "lease.json"
INTEGER_LIMIT = 2**62
"""Numbers go to a database, whose integers have 64 bits; each next fence number is larger than the last."""


def read_lease_file(stream_folder: AnyLocation) -> LeaseRecord | None:
    """The lease file's content; ``None`` if it is absent or unreadable. The ledger decides, so a damaged file must not
    block the stream.
    """
    try:
        content = json.loads(open_read_store(stream_folder).read(LEASE_FILE))
        holder = content.pop("holder")
        lease = LeaseRecord(**content, holder=Holder(**holder) if holder else None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return lease if _fits(lease, LeaseRecord) else None


def write_lease_file(stream_folder: AnyLocation, lease: LeaseRecord) -> None:
    holder = lease.holder._asdict() if lease.holder else None
    document = json.dumps(lease._asdict() | {"holder": holder}, indent=2, sort_keys=True) + "\n"
    open_write_store(stream_folder, private=True).write(LEASE_FILE, document.encode())


def delete_lease_file(stream_folder: AnyLocation) -> None:
    """Delete the lease file: a copied home has the original's."""
    open_write_store(stream_folder, private=True).delete(LEASE_FILE)


def _fits(value: object, kind: Any) -> bool:
    allowed = get_args(kind) or (kind,)
    if value is None:
        return NoneType in allowed
    if isinstance(value, int):
        return type(value) in allowed and -INTEGER_LIMIT <= value < INTEGER_LIMIT
    if isinstance(value, str):
        return str in allowed and is_unicode(value)
    if not isinstance(value, LeaseRecord | Holder) or type(value) not in allowed:
        return False
    hints = get_type_hints(type(value))
    return all(_fits(each, hints[name]) for name, each in value._asdict().items())


RUN = "run"
"""The purpose of a lease that a run holds: the only kind that ``slackwater stop`` ends."""

JVM_WAIT_S = 60.0
"""How long a command waits for the JVM of a killed driver to exit."""

EXPIRES_S = 30
"""The age of a heartbeat on another host after which the holder counts as dead."""

_LOOK_AGAIN_S = 0.1


class Signs(Enum):
    ALIVE = "alive"
    ONLY_JVM = "only its JVM lives"
    EXITED = "exited"


class Lease(AbstractContextManager["Lease"]):
    """A held lease; thread-safe."""

    def __init__(self, ledger: Ledger, record: LeaseRecord, stream_folder: AnyLocation) -> None:
        self._ledger = ledger
        self._record = record
        self._folder = stream_folder
        self._one_at_a_time = threading.Lock()

    @classmethod
    def acquire(cls, ledger: Ledger, stream: str, stream_folder: AnyLocation, purpose: str) -> Self:
        """Acquire the lease. Raises ``LeaseHeld`` (``lease-held``). Never waits. ``purpose`` is a word or two for
        messages.
        """
        while True:
            row, now, file = ledger.lease(stream), ledger.now_ms(), read_lease_file(stream_folder)
            # The file is written after the row. Only where the ledger was lost, or restored from a backup, is it ahead.
            ahead = file is not None and file.fence > (row.fence if row else 0)
            known = [lease for lease in (row, file if ahead else None) if lease is not None]
            for lease in known:
                signs = signs_of(lease, now)
                if signs is not Signs.EXITED:
                    raise _held(lease, signs, EXPIRES_S)
            # Above the number in the file, too: a ledger that was lost or restored would give a number a second time.
            fence = max((lease.fence for lease in known), default=0) + 1
            taken = LeaseRecord(stream, fence, this_process(), purpose, acquired_ms=now, heartbeat_ms=now)
            # Where the row has changed since it was read, its holder has to be looked at again.
            if ledger.take_lease(row, taken):
                break
        try:
            write_lease_file(stream_folder, taken)
        except OSError as error:
            # Nothing else of the stream could be written either, and nobody would renew the lease.
            ledger.release_lease(taken)
            raise EnvironmentMissing(
                "stream-folder-unwritable",
                "The stream's folder cannot be written",
                where=str(stream_folder),
                found=str(error),
                hint="check the folder's owner and the free space",
            ) from error
        return cls(ledger, taken, stream_folder)

    @property
    def fence(self) -> int:
        """The fence number; increases with each holder, so that stores can reject late writers."""
        return self._record.fence

    @property
    def record(self) -> LeaseRecord:
        return self._record

    def add_jvm(self, pid: int) -> None:
        """Add a JVM, which writes and so must exit before the next holder may write."""
        with self._one_at_a_time:
            holder = self._record.holder or this_process()
            holder = holder._replace(jvm_pid=pid, jvm_started=start_time(pid) or UNKNOWN_START)
            self._renew(self._record._replace(holder=holder))

    def heartbeat(self) -> None:
        """Renew the lease, a few times in ``EXPIRES_S``. Raises ``LeaseHeld`` (``lease-lost``): stop writing."""
        with self._one_at_a_time:
            self._renew(self._record)

    def release(self) -> None:
        """Release the lease; no error if it is lost."""
        with self._one_at_a_time:
            released = self._record._replace(holder=None)
            if self._ledger.release_lease(self._record):
                self._repeat_in_file(released)

    def __exit__(self, *_: object) -> None:
        self.release()

    def _renew(self, record: LeaseRecord) -> None:
        record = record._replace(heartbeat_ms=self._ledger.now_ms())
        if not self._ledger.renew_lease(record):
            raise lost(record.stream, record.fence, self._ledger.lease(record.stream))
        self._record = record
        self._repeat_in_file(record)

    def _repeat_in_file(self, record: LeaseRecord) -> None:
        # The ledger has it, and the ledger decides: a full disk is no reason to end a running query.
        with suppress(OSError):
            write_lease_file(self._folder, record)


Seen = tuple[LeaseRecord | None, float]
"""A lease, and the time of its reading by the clock of this process (``time.monotonic``)."""


def seen(ledger: Ledger, stream: str) -> Seen:
    with suppress(SlackwaterError):
        return ledger.lease(stream), time.monotonic()
    return None, time.monotonic()


def wait_until_free(
    ledger: Ledger, stream: str, *, wait_s: float, say: Say, expires_s: float = EXPIRES_S, before: Seen = (None, 0.0)
) -> None:
    """Wait, with a message, until a killed driver's JVM on this host exits.

    Raises ``LeaseHeld`` at once if the holder is alive, and after ``wait_s`` if the JVM survives. A heartbeat by a
    different clock is watched for ``expires_s`` from the time at which it was seen ``before``.
    """
    deadline = time.monotonic() + wait_s
    announced = False
    while (lease := ledger.lease(stream)) is not None:
        signs = signs_of(lease, ledger.now_ms(), expires_s)
        if _is_of_other_clock(ledger, lease, expires_s):
            ends = expires_s + (before[1] if lease == before[0] else time.monotonic())
            say(
                f"the last heartbeat of the holder of {stream} was made by the clock of "
                f"{lease.holder.host if lease.holder else 'its host'}; watching for "
                f"{max(ends - time.monotonic(), 0):.2g} s whether the holder is alive"
            )
            if not _is_silent(ledger, lease, ends):
                raise _held(lease, Signs.ALIVE, expires_s)
            # For all who ask: what was watched here cannot be seen in the row.
            ledger.release_lease(lease)
            return
        if signs is Signs.EXITED:
            return
        if signs is Signs.ALIVE or time.monotonic() >= deadline:
            raise _held(lease, signs, expires_s)
        if not announced:
            jvm = lease.holder.jvm_pid if lease.holder else None
            say(f"the driver of {stream} has exited, but its JVM (pid {jvm}) still runs; waiting up to {wait_s:g} s")
            announced = True
        time.sleep(_LOOK_AGAIN_S)


def _is_of_other_clock(ledger: Ledger, lease: LeaseRecord, expires_s: float) -> bool:
    """Return whether the heartbeat's clock may differ from the clock here: its age is then meaningless."""
    if lease.holder is None or can_look_up(lease.holder):
        return False
    age_ms, longest_ms = ledger.now_ms() - lease.heartbeat_ms, expires_s * 1000
    return age_ms < -longest_ms or (age_ms > longest_ms and not ledger.has_clock)


def _is_silent(ledger: Ledger, lease: LeaseRecord, ends: float) -> bool:
    while time.monotonic() < ends:
        time.sleep(_LOOK_AGAIN_S)
        if ledger.lease(lease.stream) != lease:
            return False
    return True


def signs_of(lease: LeaseRecord, now_ms: int, expires_s: float = EXPIRES_S) -> Signs:
    holder = lease.holder
    if holder is None:
        return Signs.EXITED
    if not can_look_up(holder):
        return Signs.ALIVE if now_ms - lease.heartbeat_ms <= expires_s * 1000 else Signs.EXITED
    # A process that can be looked up counts by that alone: one that was paused for long may resume and write.
    if is_alive(holder.pid, holder.pid_started):
        return Signs.ALIVE
    if holder.jvm_pid is not None and is_alive(holder.jvm_pid, holder.jvm_started):
        return Signs.ONLY_JVM
    return Signs.EXITED


def _held(lease: LeaseRecord, signs: Signs, expires_s: float) -> LeaseHeld:
    hint = command("stop", lease.stream)
    if signs is Signs.ONLY_JVM and lease.holder:
        hint = f"the JVM of a killed driver exits by itself within seconds; if not: kill {lease.holder.jvm_pid}"
    elif lease.purpose != RUN:
        hint = f"wait until it has ended: {command('status', lease.stream)}"
    elif lease.holder and not can_look_up(lease.holder):
        hint = (
            f"its last heartbeat was at {utc_text(lease.heartbeat_ms)}; without a new one the lease is free "
            f"{expires_s:g} s after that. To end it: {hint}"
        )
    return LeaseHeld(
        "lease-held",
        f"{lease.stream} is held by {_who(lease.holder, signs)} for {lease.purpose}, "
        f"since {utc_text(lease.acquired_ms)}",
        hint=hint,
    )


def lost(stream: str, fence: int, now: LeaseRecord | None) -> LeaseHeld:
    """The error for a lost lease; ``now`` is the lease that replaced it."""
    taker = f"{_who(now.holder, Signs.ALIVE)} for {now.purpose}" if now and now.holder else "no process"
    return LeaseHeld(
        "lease-lost",
        f"The lease of {stream} is no longer held by this process; nothing more may be written",
        expected=f"fence {fence}",
        found=f"fence {now.fence if now else 'none'}, held by {taker}",
        hint=command("status", stream),
    )


def _who(holder: Holder | None, signs: Signs) -> str:
    if holder is None:
        return "no process"
    if signs is Signs.ONLY_JVM:
        return f"the JVM (pid {holder.jvm_pid}) of a driver that has exited (pid {holder.pid}) on {holder.host}"
    return f"pid {holder.pid} on {holder.host}"


_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_s() -> float:
    """Seconds of a clock that includes suspended time, unlike ``time.monotonic`` on Linux."""
    return time.clock_gettime(_CLOCK)


@dataclass(slots=True)
class LeaseCheck:
    """A call raises ``LeaseHeld`` (``lease-lost``) if the fence number has changed. An unreadable ledger is tolerated
    while the last answer is younger than the expiry: nobody can have taken the lease.
    """

    ledger: Ledger
    stream: str
    fence: int
    _held_at: float = field(default_factory=now_s)

    def __call__(self) -> None:
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


KILLED = "killed"
"""The end of a run that could not record its own end: its driver was killed, or the ledger was unreachable."""

LeaseState = Literal["free", "held", "only-jvm", "abandoned", "expired"]


@dataclass(frozen=True, slots=True)
class LeaseView:
    """The state of a lease. ``held``: the holder is alive.

    ``only-jvm``: the driver was killed, its JVM may still write. ``abandoned``: both have exited. ``expired``: the same
    for a different host, by heartbeat.
    """

    state: LeaseState
    record: LeaseRecord | None = None


def view_of(ledger: Ledger, stream: str) -> LeaseView:
    """The lease as it is seen now."""
    record = ledger.lease(stream)
    if record is None or record.holder is None:
        return LeaseView("free")
    signs = signs_of(record, ledger.now_ms())
    if signs is Signs.ALIVE:
        return LeaseView("held", record)
    if signs is Signs.ONLY_JVM:
        return LeaseView("only-jvm", record)
    return LeaseView("abandoned" if can_look_up(record.holder) else "expired", record)


def is_running(run: RunRecord | None, lease: LeaseView) -> bool:
    if run is None or run.end is not None or lease.state != "held" or lease.record is None:
        return False
    return run.started_ms >= lease.record.acquired_ms


def end_of(run: RunRecord, lease: LeaseView) -> str:
    """The word ``running`` or ``stopping``, or the end of the run. A run without an end whose holder has exited counts
    as killed.
    """
    if run.end is not None:
        return run.end
    if not is_running(run, lease):
        return KILLED
    return "stopping" if run.stop_requested_ms is not None else "running"


def expires_ms(lease: LeaseRecord) -> int:
    """The time at which a holder on a different host counts as dead without another heartbeat."""
    return lease.heartbeat_ms + int(EXPIRES_S * 1000)
