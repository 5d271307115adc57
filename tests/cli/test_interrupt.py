"""Ctrl-C counts wherever it arrives, also where Python drops exceptions."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
from slackwater.cli.common.verb import VERBS, Verb
from slackwater.cli.main import entry
{verb}
VERBS.register("wait", Verb("Wait.", lambda parser: parser.set_defaults(verb=wait)))
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
