"""A project in a folder of its own: a pipeline file, input files, and the commands that are run on them."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slackwater.core.errors import NotFound
from slackwater.core.records import RunRecord
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.log_copier import LogFolders
from slackwater.storage.local import LocalStore
from tests.support import warm_python
from tests.support.processes import Command
from tests.support.warm_jvm import attached

PIPELINE = "work"


def copying(sink: str) -> str:
    """A pipeline whose one stream copies the ids of its input to this sink, a file a batch."""
    return f"""
import slackwater as sw

pipeline = sw.Pipeline("work")


@pipeline.stream(sink={sink})
def rows(spark):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")
"""


@dataclass(frozen=True)
class Ended:
    log: str


class Project:
    """A folder with ``pipeline.py``, ``in/`` and what running it leaves behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = Home(folder / ".slackwater")
        self.input = folder / "in"
        self.input.mkdir()
        self.commands: list[Command] = []
        self.rows = 0
        # Small batches on a machine that others use, too: no time for four partitions.
        (folder / "slackwater.toml").write_text('restarts = 2\n[spark]\n"spark.sql.shuffle.partitions" = 1\n')

    def write(self, text: str, name: str = "pipeline.py") -> None:
        (self.folder / name).write_text(text)

    def add_files(self, count: int) -> None:
        """Add input files, one row each: ids count all rows, from 0."""
        for _ in range(count):
            self.add_file(1)

    def add_file(self, rows: int) -> None:
        """Add one input file with these rows: a query that runs reads all of them in one batch."""
        first = self.rows
        self.rows += rows
        part = self.folder / "part.json"
        with part.open("w", encoding="utf-8") as file:
            for number in range(first, self.rows):
                row = {"id": number, "at": f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z"}
                file.write(json.dumps(row) + "\n")
        os.utime(part, (1_700_000_000 + first, 1_700_000_000 + first))
        part.rename(self.input / f"{first:05}.json")

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Command:
        command = Command(arguments, self.folder, environment=environment)
        self.commands.append(command)
        return command

    def run(self, *arguments: str, expected: int = 0) -> Ended:
        """``slackwater run pipeline.py ...`` to its end, with this exit code."""
        return self.slackwater("run", "pipeline.py", *arguments, expected=expected)

    def slackwater(self, *arguments: str, expected: int = 0) -> Ended:
        done = warm_python.run(arguments, self.folder, attached(self.folder), in_one=True)
        assert done.returncode == expected, f"exit code {done.returncode}:\n{done.stdout}"
        return Ended(done.stdout)

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        with Ledger.open(self.home.ledger_url, create=False) as ledger:
            yield ledger

    def runs(self, stream: str) -> list[RunRecord]:
        """The runs of a stream in the ledger; empty as long as there is no ledger."""
        try:
            with self.ledger() as ledger:
                return ledger.runs(f"{PIPELINE}/{stream}")
        except NotFound:
            return []

    def checkpoint(self, stream: str) -> Path:
        return Path(self.home.checkpoint(PIPELINE, stream, 1))

    def entries(self, stream: str, log: str) -> list[int]:
        return sorted(LogFolders(LocalStore(self.checkpoint(stream))).entries(log))

    def planned(self, stream: str) -> int:
        return max(self.entries(stream, "offsets"), default=-1)

    def committed(self, stream: str) -> int:
        return max(self.entries(stream, "commits"), default=-1)

    def ids(self, output: str) -> list[int]:
        """The ids that an output of JSON lines holds by its manifest, sorted; a row written twice is there twice."""
        folder = self.folder / output
        counted: set[str] = set()
        for entry in (folder / "_spark_metadata").glob("[0-9]*"):
            counted |= {json.loads(line)["path"].rsplit("/", 1)[1] for line in entry.read_text().splitlines()[1:]}
        lines = [line for name in counted for line in (folder / name).read_text().splitlines()]
        return sorted(json.loads(line)["id"] for line in lines)
