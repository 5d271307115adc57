"""The point of kill -9 is in the middle of a batch, and processes are ended by their own ids."""

import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from examples.demo.commands import Commands
from examples.demo.compare import newest_batch
from examples.demo.kill import KillPoint, batch_before_the_commit, batch_in_the_middle
from slackwater.audit import processes
from slackwater.core.errors import StreamFailed
from tests.sinks import delta_logs
from tests.support.errors import raises_code


@pytest.fixture
def point(tmp_path: Path) -> KillPoint:
    (tmp_path / "checkpoint/offsets").mkdir(parents=True)
    (tmp_path / "out/_spark_metadata").mkdir(parents=True)
    return KillPoint(tmp_path / "checkpoint", tmp_path / "out", least_position=3)


def plan(point: KillPoint, batch: int, position: int) -> None:
    text = f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{{}}}}\n{{"logOffset":{position}}}'
    (point.checkpoint / "offsets" / str(batch)).write_text(text)


def write(point: KillPoint, name: str) -> None:
    (point.output / "_spark_metadata" / name).touch()


def test_a_batch_that_is_planned_and_not_written_is_in_the_middle(point: KillPoint) -> None:
    assert batch_in_the_middle(point) is None
    plan(point, 2, 2)
    plan(point, 3, 3)
    assert batch_in_the_middle(point) == 3


@pytest.mark.parametrize("name", ["3", "3.compact"])
def test_a_written_batch_is_not(point: KillPoint, name: str) -> None:
    plan(point, 2, 2)
    plan(point, 3, 3)
    write(point, name)
    assert batch_in_the_middle(point) is None


def test_neither_is_one_without_data_nor_one_too_early(point: KillPoint) -> None:
    plan(point, 2, 4)
    plan(point, 3, 4)
    assert batch_in_the_middle(point) is None
    plan(point, 0, 0)
    plan(point, 1, 2)
    (point.checkpoint / "offsets/2").unlink()
    (point.checkpoint / "offsets/3").unlink()
    assert batch_in_the_middle(point) is None


def test_a_batch_that_the_table_has_and_spark_has_not_is_before_the_commit(point: KillPoint) -> None:
    def reached(least: int) -> int | None:
        return batch_before_the_commit(point.checkpoint, partial(newest_batch, point.output), least)

    (point.checkpoint / "commits").mkdir()
    assert reached(0) is None
    for batch in range(4):
        plan(point, batch, batch)
        assert reached(0) is None, "planned, not written"
        delta_logs.write_batch(point.output, "app", batch)
        assert reached(0) == batch
        assert reached(batch + 1) is None, "too early"
        (point.checkpoint / "commits" / str(batch)).touch()
        assert reached(0) is None, "committed"


WITH_A_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_leaving_the_commands_ends_what_was_started_and_what_that_started(tmp_path: Path) -> None:
    with Commands(tmp_path / "logs", {}, stop_wait_s_max=0.5) as commands:
        command = commands.start("sleeping", ["-c", WITH_A_CHILD], tmp_path)
        deadline = time.monotonic() + 30
        while not command.stdout.read_text().endswith("\n"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        running = command.processes()
        assert [member.pid for member in running] == [command.running.pid, int(command.stdout.read_text())]
    assert processes.wait_until_gone(running, 5.0)


def test_a_step_that_fails_says_what_it_said(tmp_path: Path) -> None:
    with Commands(tmp_path / "logs", {}) as commands, raises_code(StreamFailed, "demo-step", match="no such thing"):
        commands.run("failing", ["-c", "import sys; sys.exit('no such thing')"], tmp_path)


def test_a_signal_never_reaches_a_process_that_was_given_the_same_id() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        alive = processes.process(child.pid)
        assert alive is not None
        stranger = processes.Process(child.pid, alive.started - 1)
        assert not stranger.alive
        stranger.send(signal.SIGKILL)
        assert alive.alive
    finally:
        child.kill()
        child.wait()
