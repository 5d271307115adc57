"""Finds the holder of a stream, and whether a run without a recorded end is running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.core.records import LeaseRecord, RunRecord
from slackwater.ledger.lease.lease import EXPIRES_S, Signs, can_look_up, signs_of

KILLED = "killed"

LeaseState = Literal["free", "held", "only-jvm", "abandoned", "expired"]


@dataclass(frozen=True, slots=True)
class LeaseView:
    """The state of a lease. ``held``: the holder is alive.

    ``only-jvm``: the driver was killed, its JVM may still write. ``abandoned``: both have exited. ``expired``: the same
    for a different host, by heartbeat.
    """

    state: LeaseState
    record: LeaseRecord | None = None


def view_of(record: LeaseRecord | None, now_ms: int) -> LeaseView:
    if record is None or record.holder is None:
        return LeaseView("free")
    signs = signs_of(record, now_ms)
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
    """The word ``running`` or ``stopping``, or the end of the run.

    A run without an end whose holder has exited counts as killed.
    """
    if run.end is not None:
        return run.end
    if not is_running(run, lease):
        return KILLED
    return "stopping" if run.stop_requested_ms is not None else "running"


def expires_ms(lease: LeaseRecord) -> int:
    """The time at which a holder on a different host counts as dead without another heartbeat."""
    return lease.heartbeat_ms + int(EXPIRES_S * 1000)
