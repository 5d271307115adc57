"""Small programs that tests run as processes of their own, to write at once, to race, and to be killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent
_END_S = 60


class Program:
    """A running program. It communicates in lines; ``finish`` closes its stdin, which ends it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @property
    def pid(self) -> int:
        return self.process.pid

    def read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def write_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def finish(self) -> str:
        output, _ = self.process.communicate(timeout=_END_S)
        assert self.process.returncode == 0
        return output.rstrip("\n")

    def kill(self, *, reap: bool = True) -> None:
        """As ``kill -9`` does. Not reaped, it stays as a zombie."""
        self.process.kill()
        if reap:
            self.process.communicate(timeout=_END_S)


def start_program(name: str, *arguments: str) -> Program:
    command = [sys.executable, "-u", str(_FOLDER / f"{name}.py"), *arguments]
    return Program(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1))
