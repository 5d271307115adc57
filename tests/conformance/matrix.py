"""The examples of an area as one pipeline: run whole; killed, then restarted; killed, then rebuilt without checkpoints.

All streams of the area run side by side. One ``kill -9`` ends the application while each of them is held in the middle
of the same batch: every other one before its output gets the batch, the others before the batch is committed.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scripts.conformance import ALIKE, GATE
from tests.conformance.outputs import rows_of_sink
from tests.support import warm_python
from tests.support.killing import HELD_WITHIN_S, children_of, kill_when_held, kill_with_children
from tests.support.outputs import Rows
from tests.support.warm_jvm import attached

EXAMPLES = Path(__file__).parents[2] / "examples" / "guide"
HELD_BATCH = 3
IN_PARTS = pytest.mark.parametrize("part", [GATE, pytest.param(ALIKE, marks=pytest.mark.thorough)])
"""For the test of an area with rows that are like another one."""
FILE = "all.py"
ALL = """import slackwater as sw
{imports}

pipeline = sw.Pipeline("{area}", connectors={connectors})

for module in ({modules},):
    for one in module.pipeline.streams.values():
        options = {{"output_mode": one.output_mode, "trigger": one.trigger, "partition_by": one.partition_by}}
        options["settings"] = one.settings
        pipeline.stream(sink=one.sink, name=one.name, **options)(one.function)
"""
SETTINGS = """master = "local[2]"

[spark]
"""
PARTITIONS = {"spark.sql.shuffle.partitions": "2"}
EXACT = "exact"
AT_LEAST_ONCE = "at-least-once"
"""No row is missing, and those that are there twice are rows of the uninterrupted run."""
STREAMS_FAILED = 7


def by_turns(number: int) -> str:
    """The log before whose entry a stream is held: before its file sink gets the batch, or before it is committed."""
    return "out/{stream}/_spark_metadata" if number % 2 == 0 else "{commits}"


def before_commit(_: int) -> str:
    """The log of an area whose outputs are of several kinds."""
    return "{commits}"


@dataclass(frozen=True)
class Area:
    """Examples of one folder, named as their streams are, with Spark settings of their own.

    ``more`` are the streams that they define next to those; ``held`` has the batches in which streams are held that
    have no batch ``HELD_BATCH``. ``borrowed`` has the folders of streams that are in another one.
    """

    name: str
    streams: Sequence[str]
    spark: Mapping[str, str]
    connectors: Sequence[str] = ()
    holds_at: Callable[[int], str] = by_turns
    makers: Sequence[str] = ()
    plan_options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    more: Sequence[str] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    borrowed: Mapping[str, str] = field(default_factory=dict)

    @property
    def all(self) -> list[str]:
        return [*self.streams, *self.more]

    def lay_down(self, folder: Path) -> Workspace:
        folder.mkdir()
        folders = {stream: self.borrowed.get(stream, self.name) for stream in self.streams}
        for name in set(folders.values()):
            shutil.copytree(EXAMPLES / name, folder / name)
        for maker in ("make_input.py", *self.makers):
            subprocess.run([sys.executable, str(EXAMPLES / maker), str(folder)], check=True)
        lines = [f'"{name}" = "{value}"\n' for name, value in {**PARTITIONS, **self.spark}.items()]
        (folder / "slackwater.toml").write_text(SETTINGS + "".join(lines))
        modules = {"area": self.name, "modules": ", ".join(self.streams), "connectors": repr(list(self.connectors))}
        imports = "\n".join(f"from {folders[stream]} import {stream}" for stream in self.streams)
        (folder / FILE).write_text(ALL.format(**modules, imports=imports))
        return Workspace(folder, self)


@dataclass(frozen=True)
class Workspace:
    """A folder with the examples of an area, their input, their home and their outputs."""

    folder: Path
    area: Area

    def run(self) -> None:
        self.slackwater("run", FILE, "--until-caught-up")

    def run_only(self, streams: Sequence[str]) -> None:
        if streams:
            self.slackwater("run", FILE, "--until-caught-up", *_words("--stream", streams))

    def kill_in_batch(self, *how: str) -> None:
        """Run with these arguments, and kill when each stream is held in its batch ``HELD_BATCH``."""
        points = [self._point(number, stream) for number, stream in enumerate(self.area.all)]
        kill_when_held(("run", FILE, *how), self.folder, points)

    def run_until(self, reached: Callable[[], bool]) -> str:
        """Run as the file says, without options, until ``reached``, then end it with Ctrl-C; what it printed."""
        log = self.folder / "run.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "slackwater", "run", FILE],
                cwd=self.folder,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )
        deadline = time.monotonic() + HELD_WITHIN_S
        try:
            while not reached():
                assert process.poll() is None, f"ended before:\n{log.read_text()}"
                assert time.monotonic() < deadline, f"not reached:\n{log.read_text()}"
                time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            process.wait(HELD_WITHIN_S)
        finally:
            if process.poll() is None:
                kill_with_children(process, children_of(process.pid))
        assert process.returncode == 0, log.read_text()
        return log.read_text(errors="replace")

    def rebuild(self, stream: str, damage: Callable[[Path], None] = shutil.rmtree) -> str:
        """Delete or damage the checkpoint of a stream, plan a rebuild and apply it: empty, or why it was refused."""
        damage(self.checkpoint(stream))
        options = self.area.plan_options.get(stream, ())
        for words in (
            ("plan", "rebuild", stream, *options, "--out", "plan.json", "--force"),
            ("apply", "plan.json", "--yes"),
        ):
            done = self._command(*words)
            if done.returncode:
                lines: Iterable[str] = done.stderr.splitlines()
                code: Any = next((line.split()[1].rstrip(":") for line in lines if line.startswith("error ")), None)
                assert code is not None, f"ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
                return f"refused {code}"
        return ""

    def rows(self, stream: str) -> Rows:
        return rows_of_sink(self.folder / "out" / stream)

    def slackwater(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command that ends well."""
        done = self._command(*arguments)
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done

    def refused(self, *arguments: str, code: int = STREAMS_FAILED) -> str:
        """The messages of a command that ends with this exit code because streams failed or were refused."""
        done = self._command(*arguments)
        assert done.returncode == code, f"ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stderr

    def _command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return warm_python.run(arguments, self.folder, attached(self.folder), wait_s=900)

    def checkpoint(self, stream: str) -> Path:
        return self.folder / ".slackwater" / "streams" / self.area.name / stream / "checkpoints" / "0001"

    def _point(self, number: int, stream: str) -> Path:
        commits = self.checkpoint(stream) / "commits"
        place = self.area.holds_at(number).format(stream=stream, commits=commits)
        return self.folder / place / str(self.area.held.get(stream, HELD_BATCH))


def measured(area: Area, folder: Path) -> dict[str, tuple[str, str]]:
    """For each stream how its rows compare with those of an uninterrupted run: after the kill, after the rebuild."""
    if not area.streams:
        # An earlier Spark may have none of a part.
        return {}
    whole, killed = area.lay_down(folder / "whole"), area.lay_down(folder / "killed")
    whole.run()
    killed.kill_in_batch("--until-caught-up")
    shutil.copytree(killed.folder, folder / "saved", symlinks=True)
    killed.run()
    after_kill = {stream: compared(killed.rows(stream), whole.rows(stream)) for stream in area.all}
    refused = rebuilt_from(folder / "saved", killed)
    after_rebuild = {
        stream: refused[stream] or compared(killed.rows(stream), whole.rows(stream)) for stream in area.all
    }
    return {stream: (after_kill[stream], after_rebuild[stream]) for stream in area.all}


def rebuilt_from(saved: Path, killed: Workspace) -> dict[str, str]:
    """Put a killed workspace back, rebuild each stream without its checkpoint, and run: why a rebuild was refused."""
    # A home that is elsewhere is a copy: it is put back at its place.
    shutil.rmtree(killed.folder)
    shutil.copytree(saved, killed.folder, symlinks=True)
    refused = {stream: killed.rebuild(stream) for stream in killed.area.all}
    killed.run_only([stream for stream in refused if not refused[stream]])
    return refused


def compared(found: Rows, expected: Rows) -> str:
    assert expected, "an uninterrupted run writes no rows: nothing is compared"
    if found == expected:
        return EXACT
    if found >= expected and found.keys() == expected.keys():
        return AT_LEAST_ONCE
    return f"{(expected - found).total()} missing, {(found - expected).total()} unexpected of {expected.total()}"


def _words(flag: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]
