"""``slackwater stop``: asks, waits, and reports how it ended."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slackwater.audit.processes import tree, wait_until_gone
from slackwater.core.records import LeaseRecord
from slackwater.ledger.lease import Lease, this_process
from slackwater.ledger.ledger import Ledger
from tests.cli.conftest import Slackwater
from tests.support.homes import RAN_MS, STREAM, HomeSpec, make_home

NO_SUCH_PROCESS = 4_194_400
WAIT_S_MAX = 20


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    home = make_home(tmp_path, HomeSpec(run="none"))
    with Ledger.open(home / "ledger.db", create=False) as opened:
        yield opened


def test_a_run_that_ends(slackwater: Slackwater, ledger: Ledger, tmp_path: Path) -> None:
    with Lease.acquire(ledger, STREAM, tmp_path, "run"):
        run = ledger.begin_run(STREAM, 1, "4.1.3")

        def end_when_asked() -> None:
            _until(lambda: ledger.stop_requested(run.id))
            ledger.end_run(run.id, "stopped")

        with _beside(end_when_asked):
            done = slackwater("stop", "per_page")

    assert (done.code, done.out) == (0, f"{STREAM}: stopped")


def test_a_run_that_has_not_ended_when_the_waiting_does(slackwater: Slackwater, ledger: Ledger, tmp_path: Path) -> None:
    with Lease.acquire(ledger, STREAM, tmp_path, "run"):
        run = ledger.begin_run(STREAM, 1, "4.1.3")
        done = slackwater("stop", "per_page", "--wait", "0s", "--format", "json")
        shown = slackwater("status", "--format", "json").document["streams"][0]

    assert (done.code, done.error["code"]) == (6, "stop-pending")
    assert ledger.stop_requested(run.id)
    assert shown["last_run"]["end"] == "stopping"


def test_a_stream_that_waits_to_try_again_is_asked_as_soon_as_it_runs(
    slackwater: Slackwater, ledger: Ledger, tmp_path: Path
) -> None:
    with Lease.acquire(ledger, STREAM, tmp_path, "run"):
        ledger.end_run(ledger.begin_run(STREAM, 1, "4.1.3").id, "failed", "a broker was away")

        def try_again() -> None:
            run = ledger.begin_run(STREAM, 1, "4.1.3")
            _until(lambda: ledger.stop_requested(run.id))
            ledger.end_run(run.id, "stopped")

        with _beside(try_again):
            done = slackwater("stop", "per_page", "--format", "json")

    assert (done.code, done.document["end"]) == (0, "stopped")


def test_a_stream_that_does_not_run_again_within_the_wait(
    slackwater: Slackwater, ledger: Ledger, tmp_path: Path
) -> None:
    with Lease.acquire(ledger, STREAM, tmp_path, "run"):
        run = ledger.begin_run(STREAM, 1, "4.1.3")
        ledger.end_run(run.id, "failed", "a broker was away")
        done = slackwater("stop", "per_page", "--wait", "0s", "--format", "json")

    assert (done.code, done.error["code"]) == (6, "stop-pending")
    assert f"Stream {STREAM} was not asked to stop" in done.error["message"]
    assert done.error["hint"] == f"wait for its next start: slackwater stop {STREAM} --wait 10m"
    assert not ledger.stop_requested(run.id)


def test_a_driver_that_ended_without_its_ledger(slackwater: Slackwater, ledger: Ledger, tmp_path: Path) -> None:
    lease = Lease.acquire(ledger, STREAM, tmp_path, "run")
    run = ledger.begin_run(STREAM, 1, "4.1.3")

    def end_unrecorded() -> None:
        _until(lambda: ledger.stop_requested(run.id))
        lease.release()

    with _beside(end_unrecorded):
        done = slackwater("stop", "per_page", "--format", "json", "--wait", "10s")

    assert (done.code, done.document["end"]) == (0, "killed")


def test_a_holder_that_is_dead(slackwater: Slackwater, ledger: Ledger) -> None:
    run = ledger.begin_run(STREAM, 1, "4.1.3")
    dead = this_process()._replace(pid=NO_SUCH_PROCESS)
    assert ledger.take_lease(None, LeaseRecord(STREAM, 1, dead, "run", RAN_MS, RAN_MS))

    done = slackwater("stop", "per_page", "--format", "json")

    assert (done.code, done.error["code"]) == (4, "not-running")
    assert "its driver was killed" in done.error["message"]
    assert not ledger.stop_requested(run.id)


def test_an_apply_is_not_stopped(slackwater: Slackwater, ledger: Ledger, tmp_path: Path) -> None:
    killed_before = ledger.begin_run(STREAM, 1, "4.1.3")

    with Lease.acquire(ledger, STREAM, tmp_path, "apply rebuild"):
        done = slackwater("stop", "per_page", "--format", "json")

    assert done.error["message"] == f"Stream {STREAM} does not run: it is held for apply rebuild, which ends by itself"
    assert not ledger.stop_requested(killed_before.id)


@contextmanager
def _beside(work: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join(WAIT_S_MAX)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)


# Ctrl-C counts wherever it arrives, also where Python drops exceptions.


FINALIZER = """
class Late:
    def __del__(self):
        {raised}

def wait(**_):
    late = Late()
    del late
    time.sleep(30)
    return 0
"""
COMMAND = """
import signal, sys, time
from types import SimpleNamespace
from slackwater.cli.common import declare_changing
from slackwater.cli.common.arguments import VERBS
from slackwater.cli.main import entry
{verb}
VERBS["wait"] = "Wait."
sys.modules["waiting"] = SimpleNamespace(wait=wait)
declare_changing.wait = lambda parser: parser.set_defaults(verb="waiting:wait")
sys.argv = ["slackwater", "wait"]
entry()
"""


def command(raised: str, seconds: int) -> subprocess.CompletedProcess[str]:
    """The command line with a verb that waits 30 s after something was raised in a finalizer."""
    program = COMMAND.format(verb=FINALIZER.format(raised=raised))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=seconds)


def test_in_a_finalizer() -> None:
    done = command("signal.raise_signal(signal.SIGINT)", 25)

    assert done.returncode == 130
    assert "interrupted" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_error_of_a_finalizer_is_shown_and_ends_nothing() -> None:
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        command("raise ValueError('lost')", 5)

    assert b"ValueError: lost" in (caught.value.stderr or b"")


# Its child ends only by kill -9, so that a second signal arrives while the command is ending it.
LONG_COMMAND = """
import sys
from pathlib import Path
from examples.demo.commands import Commands
from slackwater.cli.common.console import interrupt_on_signals
interrupt_on_signals()
folder = Path(sys.argv[1])
with Commands(folder / "logs", {}, stop_wait_s_max=1.0) as commands:
    commands.run("child", ["-c", sys.argv[2]], folder)
"""
CHILD = """
import os, signal, time
from pathlib import Path
signal.signal(signal.SIGTERM, lambda *_: Path("asked").touch())
Path("pid").write_text(str(os.getpid()))
while not Path("finish").exists():
    time.sleep(0.02)
"""


def started(folder: Path, *prefix: str) -> subprocess.Popen[bytes]:
    """A command as ``demo`` and ``audit`` are, whose child runs."""
    # The tests themselves may have been started by nohup.
    prefix = prefix or ("env", "--default-signal=HUP")
    program = [*prefix, sys.executable, "-c", LONG_COMMAND, str(folder), CHILD]
    command = subprocess.Popen(program, stderr=subprocess.PIPE)
    wait_for(folder / "pid")
    return command


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM], ids=["closed-terminal", "terminated"])
def test_a_signal_ends_the_processes_of_the_command_and_a_closed_terminal_sends_two(
    number: signal.Signals, tmp_path: Path
) -> None:
    command = started(tmp_path)
    child = tree(command.pid)[1:]
    assert child
    command.send_signal(number)
    wait_for(tmp_path / "asked")
    command.send_signal(signal.SIGHUP)
    _, messages = command.communicate(timeout=30)
    assert b"KeyboardInterrupt" in messages
    assert wait_until_gone(child, 5.0)


def test_under_nohup_a_closed_terminal_ends_nothing(tmp_path: Path) -> None:
    command = started(tmp_path, "nohup")
    command.send_signal(signal.SIGHUP)
    (tmp_path / "finish").touch()
    _, messages = command.communicate(timeout=30)
    assert (command.returncode, b"KeyboardInterrupt" in messages) == (0, False)
