"""Runs commands as a user would, each in a session of its own: Ctrl-C reaches only the demo, which ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from slackwater.audit.processes import JVM_OPTIONS, Process, send_all, tree, wait_until_gone
from slackwater.core.errors import StreamFailed

_SHOWN_LINES = 12


@dataclass(frozen=True, slots=True)
class Command:
    """A command that was started; its output goes to the files ``stdout`` and ``stderr``."""

    name: str
    running: subprocess.Popen[bytes]
    stdout: Path
    stderr: Path

    def processes(self) -> tuple[Process, ...]:
        """Its processes that live now: Python, then the JVM and what that started."""
        return tree(self.running.pid) if self.running.poll() is None else ()


class Commands:
    """All commands of one demo. Leaving the ``with`` block ends those that still run."""

    def __init__(self, logs: Path, extra_environment: Mapping[str, str], stop_wait_s_max: float = 10.0) -> None:
        self._logs = logs
        self._environment = {**_own_environment(), **extra_environment}
        self._stop_wait_s_max = stop_wait_s_max
        self._started: list[Command] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_all()

    def start(self, name: str, arguments: Sequence[str], folder: Path) -> Command:
        """Start ``python ARGUMENTS`` in a folder and return at once."""
        self._logs.mkdir(parents=True, exist_ok=True)
        stem = f"{len(self._started) + 1:02d}-{name}"
        stdout, stderr = self._logs / f"{stem}.out", self._logs / f"{stem}.err"
        with stdout.open("wb") as out, stderr.open("wb") as err:
            running = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        command = Command(name, running, stdout, stderr)
        self._started.append(command)
        return command

    def finish(self, command: Command) -> str:
        """Wait for its end and return what it wrote to stdout. Raises StreamFailed where it ends with an error."""
        code = command.running.wait()
        if code != 0:
            raise step_failed(command, f"ended with exit code {code}")
        return command.stdout.read_text(encoding="utf-8")

    def run(self, name: str, arguments: Sequence[str], folder: Path) -> str:
        """Start, and finish."""
        return self.finish(self.start(name, arguments, folder))

    def slackwater(self, name: str, arguments: Sequence[str], folder: Path) -> str:
        """Run ``slackwater ARGUMENTS``."""
        return self.run(name, ["-m", "slackwater", *arguments], folder)

    def stop_all(self) -> None:
        """End what still runs: terminate Python, then kill it and its JVM, each by its own id."""
        running = tuple(member for command in self._started for member in command.processes())
        for command in self._started:
            if command.running.poll() is None:
                command.running.terminate()
        if not wait_until_gone(running, self._stop_wait_s_max):
            send_all(running, signal.SIGKILL)
        for command in self._started:
            command.running.wait()


def step_failed(command: Command, what: str) -> StreamFailed:
    """The error for a step that did not do what it should."""
    lines = command.stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return StreamFailed(
        "demo-step",
        f"Step {command.name} of the demo {what}",
        where=str(command.stderr),
        found="\n" + "\n".join(lines[-_SHOWN_LINES:]) if lines else None,
        hint="run slackwater demo --folder DIR to keep everything, then read the file named here",
    )


def _own_environment() -> dict[str, str]:
    """This process's environment without settings that would point a step to a real home or cluster."""
    names = (name for name in os.environ if not name.startswith(("SLACKWATER_", "WEATHER_")))
    jvm_options = f"{JVM_OPTIONS} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip()
    return {name: os.environ[name] for name in names} | {"PYTHONUNBUFFERED": "1", "SPARK_SUBMIT_OPTS": jvm_options}
