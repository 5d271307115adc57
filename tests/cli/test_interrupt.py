"""Ctrl-C counts wherever it arrives, also where Python drops exceptions."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slackwater.audit.processes import tree, wait_until_gone

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
