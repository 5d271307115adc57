"""Failures of a plain query, which Slackwater never runs: its checkpoint is adopted after the failure."""

import json
import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.diagnose.live.damage import remove
from tests.restart.small import SmallWorkspace as Files
from tests.support import warm_python
from tests.support.outputs import Rows, rows_of
from tests.support.warm_jvm import attached

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).with_name("plain.py")
READ, FILES = 5, 8
MOST_TYPED = 5
LATE_MINUTE, LATE_N = 50, 100
"""Spark drops what was late in the batch before: here by the file that the sink skips, and not by those before it."""


class Plain:
    """The folder of a query that its own program runs."""

    def __init__(self, folder: Path) -> None:
        self.files = Files(folder, "")
        self.folder = folder
        shutil.copy(PROGRAM, folder)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def arrive(self, first: int, last: int) -> None:
        """Files that begin 15 minutes of event time after each other."""
        for number in range(first, last):
            self.files.add(f"f{number}", [number * 15 + minute for minute in (0, 4, 9, 13)], n=number + 1)

    def arrive_late(self) -> None:
        """A row of a window that the watermark has passed."""
        self.files.add("late", [LATE_MINUTE], n=LATE_N)

    def run(self, trigger: str = "availableNow") -> None:
        done = warm_python.run_program([PROGRAM.name, trigger], self.folder, attached(self.folder))
        assert done.returncode == 0, done.stderr

    def rows(self) -> Rows:
        return rows_of(self.folder / "out")

    def type(self, line: str) -> subprocess.CompletedProcess[str]:
        words = shlex.split(line)[1:]
        words += ["--yes", "--i-stopped-it"] if words[0] == "apply" else []
        return warm_python.run(words, self.folder, attached(self.folder) if words[0] in {"plan", "apply"} else {})

    def done(self, line: str) -> str:
        """What a command prints that must succeed."""
        done = self.type(line)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


def started(folder: Path) -> Plain:
    """A query that has committed three batches, the last of them with data; more files wait."""
    plain = Plain(folder)
    for first, last in ((0, READ - 2), (READ - 2, READ - 1), (READ - 1, READ)):
        plain.arrive(first, last)
        # A trigger that runs one batch, and no batch without data after it.
        plain.run("once")
    plain.arrive(READ, READ + 1)
    plain.arrive_late()
    plain.arrive(READ + 1, FILES)
    return plain


def uninterrupted(folder: Path) -> Rows:
    """The rows of the query where nothing happens."""
    plain = started(folder)
    plain.run()
    return plain.rows()


def killed(folder: Path) -> Plain:
    """The driver was killed after the sink wrote the newest batch, and before Spark committed it."""
    plain = started(folder)
    newest = max(int(path.name) for path in (plain.checkpoint / "commits").iterdir() if path.name.isdigit())
    assert (plain.folder / "out" / "_spark_metadata" / str(newest)).exists()
    remove(plain.checkpoint / "commits" / str(newest))
    return plain


def type_all(plain: Plain, line: str) -> list[str]:
    """Type a command, then the one that each prints, until the query is to be started again; what was typed."""
    typed: list[str] = []
    while len(typed) < MOST_TYPED:
        typed.append(line)
        printed = plain.done(line)
        if "start the query again" in printed:
            return typed
        line = re.findall(r"slackwater (?:plan|apply) .*", printed)[-1]
    raise AssertionError(f"the printed commands do not lead to the end: {typed}")


@pytest.mark.thorough
def test_wm_01_a_batch_that_the_sink_skips_does_not_advance_the_watermark(tmp_path: Path) -> None:
    expected = uninterrupted(tmp_path / "whole")
    plain = killed(tmp_path / "scene")
    shutil.copytree(plain.folder, tmp_path / "damaged")

    plain.run()
    wrong = plain.rows() - expected
    assert sum(wrong.values()) == 1, "Spark reports success, and one sum has the late row"
    assert Counter(row for row in expected - plain.rows()).total() == 1

    shutil.rmtree(plain.folder)
    shutil.move(tmp_path / "damaged", plain.folder)
    plain.done(f"slackwater adopt {plain.checkpoint} --sink {plain.folder / 'out'} --name totals")
    shown = json.loads(plain.type("slackwater doctor watched/totals --format json").stdout)
    first = next(one for one in shown["streams"][0]["findings"] if one["severity"] != "info")
    assert (first["code"], first["risk"], first["goal"]) == ("watermark-misses-batch", "wrong", "resume")
    assert "WM-01" in first["covers"]

    typed = type_all(plain, first["next"])
    assert [line.split()[1] for line in typed] == ["plan", "plan", "apply"]
    plain.run()

    assert plain.rows() == expected
