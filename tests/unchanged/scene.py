"""An application with its input, run by plain Python or by Slackwater, and what it leaves behind."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from slackwater.checkpoint.logs import read_logs
from slackwater.storage.local import LocalStore
from tests.support import warm_python
from tests.support.killing import kill_with_children
from tests.support.processes import descendants
from tests.support.warm_jvm import attached

APPLICATIONS = Path(__file__).with_name("applications")
FILES = 14
KILLED_AFTER = 7
LATER_S_MAX = 0.5
"""Some batches take this long."""


class Scene:
    def __init__(self, folder: Path, name: str, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.environment = environment or {}
        self.program = folder / name
        if name.endswith(".py"):
            shutil.copy(APPLICATIONS / name, self.program)
        else:
            shutil.copytree(APPLICATIONS / name, self.program)

    def add_files(self, data: str, count: int) -> None:
        """Input below ``data``: a file a batch, each with half an hour of clicks."""
        (self.folder / data / "in").mkdir(parents=True, exist_ok=True)
        for number in range(count):
            minutes = [number * 7 + row for row in range(0, 30, 2)]
            rows = [{"at": f"2026-01-01T{m // 60:02}:{m % 60:02}:00Z", "page": f"p{m % 3}"} for m in minutes]
            file = self.folder / data / "in" / f"{number:03}.json"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))

    def run_and_kill(self, *arguments: str, checkpoint: str, plain: bool = False) -> None:
        """kill -9 of ``slackwater run``, or ``plain`` Python, and its JVM, once some batches are committed."""
        run = () if plain else ("-m", "slackwater", "run")
        words = [sys.executable, *run, self.program.name, *(() if plain else ("--",)), *arguments]
        self.kill_once_committed(words, checkpoint)

    def kill_once_committed(self, words: Sequence[str], checkpoint: str) -> None:
        """Start a program, and kill it and its JVM a random time after some batches of a query are committed."""
        log = self.folder / "run.log"
        with log.open("w") as out:
            environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, **self.environment}
            process = subprocess.Popen(
                words, cwd=self.folder, env=environment, start_new_session=True, stdout=out, stderr=out
            )
        deadline = time.monotonic() + 240
        while read_logs(LocalStore(self.folder / checkpoint)).committed < KILLED_AFTER:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        seed = time.time_ns()
        sys.stdout.write(f"killed after a random time with seed {seed}\n")
        time.sleep(random.Random(seed).uniform(0, LATER_S_MAX))
        kill_with_children(process, descendants(process.pid))

    def plain(self, *arguments: str) -> None:
        environment = {**self.environment, **attached(self.folder)}
        ended = warm_python.run_program([str(self.program), *arguments], self.folder, environment)
        assert ended.returncode == 0, ended.stderr

    def type(self, *words: str, exit_code: int | None = 0) -> str:
        environment = {**self.environment, **attached(self.folder)}
        ended = warm_python.run(words, self.folder, environment, in_one=True)
        assert exit_code in (None, ended.returncode), ended.stdout
        return str(ended.stdout)

    def rows(self, output: str) -> Counter[str]:
        return listed_rows(self.folder / output)


def listed_rows(folder: Path) -> Counter[str]:
    files = set[str]()
    for entry in (folder / "_spark_metadata").iterdir():
        if not entry.name.startswith("."):
            files |= {json.loads(line)["path"].rpartition("/")[2] for line in entry.read_text().splitlines()[1:]}
    return Counter(line for file in files for line in (folder / file).read_text().splitlines())
