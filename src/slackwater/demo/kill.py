"""``kill -9`` in the middle of a batch: after Spark has planned it, before the sink has written it.

Waits on progress, never on time. To be sure of the time, the processes are stopped (SIGSTOP), checked, and only then
killed; a batch that got through before the frost is let go, and the next one is waited for.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

from slackwater.demo.commands import Command, step_failed
from slackwater.demo.processes import Process, send_all, wait_until_gone
from slackwater.demo.source_files import position
from slackwater.formats.file_sink_log import FOLDER

LOOK_EVERY_S = 0.005
WAIT_S_MAX = 240.0
DEATH_WAIT_S_MAX = 20.0


@dataclass(frozen=True, slots=True)
class KillPoint:
    """What to wait for: a batch of this checkpoint that reads up to ``least_position`` or on, not in the output yet."""

    checkpoint: Path
    output: Path
    least_position: int


def kill_in_the_middle(command: Command, point: KillPoint) -> int:
    """Kill Python and its JVM in the middle of a batch; returns the batch. Raises StreamFailed where none comes."""
    deadline = time.monotonic() + WAIT_S_MAX
    while time.monotonic() < deadline:
        if command.running.poll() is not None:
            raise step_failed(command, f"ended by itself with exit code {command.running.returncode}")
        if batch_in_the_middle(point) is not None:
            batch = _kill_if_still(command, point)
            if batch is not None:
                return batch
        time.sleep(LOOK_EVERY_S)
    raise step_failed(command, f"came to no batch to be killed in within {WAIT_S_MAX:.0f} s")


def batch_in_the_middle(point: KillPoint) -> int | None:
    """The batch that is planned and not written; ``None`` where there is none that reads new data, or not yet."""
    batch = _newest(point.checkpoint / "offsets")
    if batch < 1 or _is_written(point.output, batch):
        return None
    reached = position(point.checkpoint, batch)
    # A batch without data only moves the watermark; it ends too quickly to be caught.
    is_data = reached > position(point.checkpoint, batch - 1)
    return batch if is_data and reached >= point.least_position else None


def _kill_if_still(command: Command, point: KillPoint) -> int | None:
    processes = command.processes()
    send_all(processes, signal.SIGSTOP)
    _wait_until_frozen(processes)
    batch = batch_in_the_middle(point)
    if batch is None:
        send_all(processes, signal.SIGCONT)
        return None
    send_all(processes, signal.SIGKILL)
    command.running.wait()
    if not wait_until_gone(processes, DEATH_WAIT_S_MAX):
        raise step_failed(command, "outlived kill -9")
    return batch


def _wait_until_frozen(processes: tuple[Process, ...]) -> None:
    """A signal is sent at once and obeyed a little later; only then does nothing move any more."""
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline and not all(_is_frozen(member) for member in processes):
        time.sleep(0.001)


def _is_frozen(member: Process) -> bool:
    try:
        stat = Path("/proc", str(member.pid), "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in {"T", "t", "Z", "X"}


def _is_written(output: Path, batch: int) -> bool:
    manifest = output / FOLDER
    return (manifest / str(batch)).exists() or (manifest / f"{batch}.compact").exists()


def _newest(log: Path) -> int:
    try:
        return max((int(path.name) for path in log.iterdir() if path.name.isdigit()), default=-1)
    except FileNotFoundError:
        return -1
