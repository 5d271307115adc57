"""Follows a page of the documentation as a reader does: types its commands into one shell, in an empty folder."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?P<language>sh|console)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Each JVM runs for seconds: without the second compiler it needs a third less of two cores' time."""

WAIT_S = 240.0
RUNNING = r" running$"
WITH_SPARK = re.compile(r"slackwater (run|check|plan|apply) ")


@dataclass(frozen=True)
class Step:
    """A command of the page and, in a ``console`` block, the output that the page shows for it."""

    command: str
    shown: tuple[str, ...] | None = None

    @property
    def in_background(self) -> bool:
        return re.sub(r"\s#.*", "", self.command).rstrip().endswith("&")


@dataclass(frozen=True)
class Typed:
    """What came of a command. A command in the background has exit code 0 and the output so far."""

    step: Step
    code: int
    output: str

    @property
    def lines(self) -> list[str]:
        """The output, without bash's report of a killed process in the background."""
        lines = [line.rstrip() for line in self.output.splitlines()]
        return [line for line in lines if not re.match(r"\S*bash: line \d+: +\d+ Killed ", line)]


def steps_of(page: str) -> list[Step]:
    """The commands of all ``sh`` and ``console`` blocks, in order, without the comments above them."""
    found: list[Step] = []
    for block in BLOCK.finditer(page):
        if block["language"] == "sh":
            found += [Step(line) for line in block["text"].splitlines() if line.strip() and not line.startswith("# ")]
        else:
            found += _console_steps(block["text"])
    return found


def _console_steps(text: str) -> Iterator[Step]:
    command: str | None = None
    shown: list[str] = []
    for line in [*text.splitlines(), "$ "]:
        if not line.startswith("$ "):
            shown.append(line)
            continue
        if command is not None:
            yield Step(command, tuple(shown))
        command, shown = line[2:], []


class Reader:
    """A shell in a folder, with the commands of this environment on its PATH.

    ``attach`` returns the environment with which commands that start in a folder use a JVM that is there.
    """

    def __init__(self, folder: Path, attach: Callable[[Path], Mapping[str, str]] | None = None) -> None:
        self._attach = attach
        names = (name for name in os.environ if not name.startswith("SLACKWATER_"))
        environment = {name: os.environ[name] for name in names}
        environment |= {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "SPARK_SUBMIT_OPTS": f"{JVM_OPTIONS} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip(),
        }
        self._outputs = folder.with_name(f"{folder.name}-outputs")
        self._outputs.mkdir()
        self._code = 0
        self._count = 0
        bash = shutil.which("bash")
        assert bash is not None
        self._shell = subprocess.Popen(
            [bash, "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The shell's session: itself and what it has in the background. A JVM ends with the driver that started it.
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        for pipe in (self._shell.stdin, self._shell.stdout):
            assert pipe is not None
            pipe.close()

    def type(self, step: Step) -> Typed:
        """Type the command, and wait for its end, or as long as a reader waits for one in the background."""
        self._count += 1
        output = self._outputs / f"{self._count:02d}.txt"
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(self._settings(step))
        # The exit code before it is there for `echo $?`.
        self._shell.stdin.write(f"{{ (exit {self._code})\n{step.command}\n}} >{output} 2>&1 </dev/null; echo $?\n")
        self._shell.stdin.flush()
        self._code = int(self._shell.stdout.readline())
        if step.in_background:
            # What a reader waits to see of a command in the background: its last shown line, or that the streams run.
            batches = re.findall(r"batch=\d+ ", "\n".join(step.shown or ()))
            self._wait_for((batches[-1] if batches else RUNNING), output)
        return Typed(step, self._code, output.read_text())

    def _settings(self, step: Step) -> str:
        if self._attach is None or not WITH_SPARK.match(step.command):
            return ""
        settings = self._attach(Path(f"/proc/{self._shell.pid}/cwd").readlink())
        return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())

    def _wait_for(self, pattern: str, output: Path) -> None:
        deadline = time.monotonic() + WAIT_S
        while not re.search(pattern, output.read_text(), re.MULTILINE):
            failed = re.search(r"^(error |Traceback )", output.read_text(), re.MULTILINE)
            assert failed is None, output.read_text()
            assert time.monotonic() < deadline, f"no line {pattern!r} in:\n{output.read_text()}"
            time.sleep(0.05)
