from __future__ import annotations

import os
import pathlib
import subprocess
import time

import pytest

from slackwater.ledger.lease import UNKNOWN_START, can_look_up, is_alive, start_time, this_process

pytestmark = pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="start times come from /proc")


def test_this_process_lives() -> None:
    holder = this_process()
    assert holder.pid == os.getpid()
    assert holder.pid_started > 0
    assert can_look_up(holder)
    assert is_alive(holder.pid, holder.pid_started)


def test_a_process_id_that_was_given_out_again_is_another_process() -> None:
    holder = this_process()
    assert not is_alive(holder.pid, holder.pid_started - 1)


def test_an_unknown_start_time_counts_as_the_same_process() -> None:
    assert is_alive(os.getpid(), UNKNOWN_START)
    assert is_alive(os.getpid(), None)


def test_a_process_has_exited_even_while_its_parent_has_not_waited_for_it() -> None:
    process = subprocess.Popen(["sleep", "60"])
    started = start_time(process.pid)
    assert started is not None
    assert is_alive(process.pid, started)
    process.kill()
    _wait_for_zombie(process.pid)
    assert not is_alive(process.pid, started)
    process.wait()
    assert not is_alive(process.pid, started)


def test_a_command_with_brackets_and_spaces_in_its_name_is_read_well() -> None:
    rename = "import sys; open('/proc/self/comm', 'w').write('a) Z 1 (b'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(["python3", "-c", rename], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        started = start_time(process.pid)
        assert started is not None
        assert started >= this_process().pid_started


@pytest.mark.parametrize("change", [{"host": "elsewhere"}, {"pid_space": "an earlier boot"}])
def test_ids_of_another_host_boot_or_container_cannot_be_looked_up(change: dict[str, str]) -> None:
    assert not can_look_up(this_process()._replace(**change))  # type: ignore[arg-type]  # only its texts are changed


def _wait_for_zombie(pid: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with pathlib.Path(f"/proc/{pid}/stat").open() as stat:
            if ") Z " in stat.read():
                return
        time.sleep(0.005)
    pytest.fail("the process did not end")
