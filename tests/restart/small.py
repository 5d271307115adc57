"""Small workspaces: a few files of rows by the minute, which a test adds one after another, and a pipeline of its own.

What a command prints as its next step is read from its output and typed, as a user would.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.restart.scenario import CONF, SCHEMA, STREAM, Workspace
from tests.support import warm_python
from tests.support.homes import edit_ledger
from tests.support.killing import kill_when

WINDOW_MINUTES = 30
DELAY_MINUTES = 10
HEADER = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("web")

"""
SOURCE = f'spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json("landing")'
BODY = f'''
@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    rows = {SOURCE}
    marked = rows.withWatermark("ts", "{DELAY_MINUTES} minutes")
    return marked.groupBy(F.window("ts", "{WINDOW_MINUTES} minutes"), "page").agg(F.sum("n").alias("n"))
'''
PIPELINE = HEADER + BODY
Minutes = Iterable[int]

CAUGHT_UP = ("run", "clicks.py", "--until-caught-up", *CONF)
UNCOMPARED = ("ledger.db", "lease.json")


class NoRows:
    """No input at first: a test adds its files itself."""

    def lay_down(self, folder: Path) -> None:
        (folder / "landing").mkdir()

    def source(self) -> str:
        return SOURCE


class SmallWorkspace(Workspace):
    """A workspace whose input a test adds file by file."""

    def __init__(self, folder: Path, pipeline: str = PIPELINE) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder, NoRows())
        self.write(pipeline)

    def write(self, pipeline: str) -> None:
        (self.folder / "clicks.py").write_text(pipeline)

    def add(self, name: str, minutes: Minutes, page: str = "a", n: int = 1, folder: str = "landing") -> None:
        """Add a file with a row for each minute of 2024-01-01."""
        rows = [{"ts": f"2024-01-01T{m // 60:02d}:{m % 60:02d}:00Z", "page": page, "n": n} for m in minutes]
        hidden = self.folder / f".{name}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        # In the order in which the files are added, as the source reads the oldest first.
        (self.folder / folder).mkdir(exist_ok=True)
        newest = 1_700_000_000 + len(list((self.folder / folder).iterdir()))
        os.utime(hidden, (newest, newest))
        hidden.rename(self.folder / folder / f"{name}.json")

    def caught_up(self, *more: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return self.slackwater(*CAUGHT_UP, *more, code=code)

    def kill_idle(self, committed: int = 0, *more: str) -> None:
        """Run, and kill when the query has committed a batch and waits for its next trigger."""
        process = self.start("run", "clicks.py", *more, *CONF)
        checkpoint = self.stream_folder / "checkpoints" / "0001"
        kill_when(process, *((checkpoint / log / str(committed)).exists for log in ("commits", "offsets")))

    def forget_programs(self) -> None:
        """Remove the programs that made the state from the records."""
        file = self.stream_folder / "stream.json"
        content = json.loads(file.read_text())
        for generation in content["generations"]:
            del generation["programs"]
        file.write_text(json.dumps(content))
        edit_ledger(
            self.folder / ".slackwater", "UPDATE generations SET programs = NULL", "UPDATE runs SET program = NULL"
        )

    def status_code(self) -> int:
        return warm_python.run(["status"], self.folder, {}).returncode

    def status(self, code: int = 0) -> dict[str, Any]:
        """The status of the one stream, with the exit code that the command must have."""
        document = json.loads(self.slackwater("status", f"web/{STREAM}", "--format", "json", code=code).stdout)
        stream: dict[str, Any] = document["streams"][0]
        return stream


def error_code(done: subprocess.CompletedProcess[str]) -> str:
    line = next(line for line in done.stderr.splitlines() if line.startswith("error "))
    return line.split()[1].rstrip(":")


def printed_commands(text: str) -> list[list[str]]:
    """The commands of Slackwater that a text names, in order, each up to a semicolon or the end of its line."""
    found = re.findall(r"slackwater ((?:run|plan|apply|undo|status) [^;\n]*)", text)
    return [shlex.split(command) for command in found]


def follow(workspace: Workspace, printed: str, finished: Callable[[], bool], *, steps: int = 6) -> list[str]:
    """Type the first printed command, then the first that it prints, until ``finished``; what was typed.

    Spark's settings are added where a command takes them, and the consent that a terminal would ask for.
    """
    typed: list[str] = []
    commands = printed_commands(printed)
    while commands and len(typed) < steps:
        words = list(commands[0])
        typed.append(shlex.join(words))
        if words[0] == "run":
            words += ["--until-caught-up", *CONF]
        if words[0] == "apply":
            words += [*([] if "--yes" in words else ["--yes"]), *CONF]
        done = workspace.slackwater(*words)
        if finished():
            return typed
        commands = printed_commands(done.stderr)
    raise AssertionError(f"the printed commands do not lead to the end: {typed}")


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content, without ledgers and leases, which commands that refuse write, too."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.split("/")[-1].startswith(UNCOMPARED)}


class Saved:
    """A copy of a workspace's folder that can be put back at the same place: a home that is elsewhere is another."""

    def __init__(self, workspace: Workspace, at: Path) -> None:
        self._folder, self._at = workspace.folder, at
        shutil.copytree(self._folder, at, symlinks=True)

    def restore(self) -> None:
        shutil.rmtree(self._folder)
        shutil.copytree(self._at, self._folder, symlinks=True)


def expected(minutes: Minutes, first: int, last: int, n: int = 1) -> Counter[int]:
    """Sums by window start (in minutes) of the windows from ``first`` to before ``last``, in plain Python."""
    sums: Counter[int] = Counter()
    for minute in minutes:
        sums[minute // WINDOW_MINUTES * WINDOW_MINUTES] += n
    return Counter({start: total for start, total in sums.items() if first <= start < last})
