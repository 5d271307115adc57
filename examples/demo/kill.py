"""``kill -9`` at a known point of a batch.

Waits on progress, never on time. To be sure of the time, the processes are stopped (SIGSTOP), checked, and only then
killed; a batch that got through before the frost is let go, and the next one is waited for.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from examples.demo.commands import Command, step_failed
from examples.demo.gold_table import GoldTable
from examples.demo.source_files import position
from slackwater.audit.processes import Process, process, send_all, wait_until_gone
from slackwater.formats.compactible import SINK_LOG

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
    """Kill Python and its JVM after Spark has planned a batch and before the sink has written it; the batch.

    Raises StreamFailed where none comes, as do the functions below.
    """
    return _kill_in(command, partial(batch_in_the_middle, point))


def kill_before_the_commit(command: Command, checkpoint: Path, written: Callable[[], int], least: int) -> int:
    """Kill after the sink has written a batch from ``least`` on and before Spark has committed it; the batch.

    ``written`` reads the newest batch in the sink.
    """
    return _kill_in(command, partial(batch_before_the_commit, checkpoint, written, least))


def kill_after_publishing(command: Command, checkpoint: Path, table: GoldTable, least: int) -> int:
    """The same for a table of PostgreSQL, whose commit is followed by Spark's too quickly to be met by looking.

    The marker's row is held until Python waits for it, then the JVM is frozen and the row let go: Python publishes the
    batch, and nobody is there to commit it.
    """
    _wait(command, lambda: _newest(checkpoint / "offsets") >= least)
    with table.held() as is_waited_for:
        _wait(command, is_waited_for)
        driver = command.running.pid
        rest = tuple(member for member in command.processes() if member.pid != driver)
        send_all(rest, signal.SIGSTOP)
        _wait_until_frozen(rest)
        batch = _newest(checkpoint / "offsets")
    _wait(command, lambda: table.newest_batch() == batch)
    if _newest(checkpoint / "commits") >= batch:
        raise step_failed(command, f"committed batch {batch} before it was published")
    _kill(command, command.processes())
    return batch


def _kill_in(command: Command, reached: Callable[[], int | None]) -> int:
    """Kill Python and its JVM when a batch is where it is to be killed, as ``reached`` returns it."""
    while True:
        _wait(command, lambda: reached() is not None)
        batch = _kill_if_still(command, reached)
        if batch is not None:
            return batch


def _wait(command: Command, happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not happened():
        if command.running.poll() is not None:
            raise step_failed(command, f"ended by itself with exit code {command.running.returncode}")
        if time.monotonic() > deadline:
            raise step_failed(command, f"came to no batch to be killed in within {WAIT_S_MAX:.0f} s")
        time.sleep(LOOK_EVERY_S)


def batch_in_the_middle(point: KillPoint) -> int | None:
    """The batch that is planned and not written; ``None`` where there is none that reads new data, or not yet."""
    batch = _newest(point.checkpoint / "offsets")
    if batch < 1 or _is_written(point.output, batch):
        return None
    reached = position(point.checkpoint, batch)
    # A batch without data only moves the watermark; it ends too quickly to be caught.
    is_data = reached > position(point.checkpoint, batch - 1)
    return batch if is_data and reached >= point.least_position else None


def batch_before_the_commit(checkpoint: Path, written: Callable[[], int], least: int) -> int | None:
    """The batch that the sink has written and Spark has not committed; ``None`` where there is none, or not yet."""
    batch = _newest(checkpoint / "offsets")
    if batch < least or _newest(checkpoint / "commits") >= batch:
        return None
    return batch if written() == batch else None


def _kill_if_still(command: Command, reached: Callable[[], int | None]) -> int | None:
    # Without Python no batch function returns; its JVM is looked up only then, which takes longer.
    driver = process(command.running.pid)
    send_all((driver,) if driver else (), signal.SIGSTOP)
    processes = command.processes()
    send_all(processes, signal.SIGSTOP)
    _wait_until_frozen(processes)
    batch = reached()
    if batch is None:
        send_all(processes, signal.SIGCONT)
        return None
    _kill(command, processes)
    return batch


def _kill(command: Command, processes: tuple[Process, ...]) -> None:
    send_all(processes, signal.SIGKILL)
    command.running.wait()
    if not wait_until_gone(processes, DEATH_WAIT_S_MAX):
        raise step_failed(command, "outlived kill -9")


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
    manifest = output / SINK_LOG
    return (manifest / str(batch)).exists() or (manifest / f"{batch}.compact").exists()


def _newest(log: Path) -> int:
    try:
        return max((int(path.name) for path in log.iterdir() if path.name.isdigit()), default=-1)
    except FileNotFoundError:
        return -1
