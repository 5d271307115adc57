"""A failure end to end: what happens to a query, what Spark does then, what doctor says, and where its commands lead.

``make_stream`` has a stream run, and its query without an interruption. ``prove`` damages a copy of the stream's folder
at the same place. Plain Spark continues the same query there; from the same damage again, what doctor and then the
commands print is typed, until the stream has caught up and its output has the rows of the uninterrupted query.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.restart.scenario import WITH_SPARK
from tests.restart.small import HEADER, SOURCE, Saved, SmallWorkspace
from tests.support import warm_python
from tests.support.outputs import Rows
from tests.support.warm_jvm import attached

OWN = Path(__file__).with_name("own.py")
SETTINGS = ("spark.sql.shuffle.partitions=2",)
COMPACTING = (*SETTINGS, "spark.sql.streaming.fileSink.log.compactInterval=3")
BACKED_UP, READ, FILES = 3, 5, 8
RUN = ("run", "clicks.py", "--until-caught-up")
MOST_TYPED = 10
COMMAND = re.compile(r"(slackwater (?:run|plan|apply|undo) [^;\n]*|(?:mkdir|mv|touch|printf) .*)")

COPIED = f"""
@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    return {SOURCE}
"""
TOTALS = f"""
@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    rows = {SOURCE}
    marked = rows.withWatermark("ts", "10 minutes")
    return marked.groupBy(F.window("ts", "30 minutes"), "page").agg(F.sum("n").alias("n"))
"""


class Scene(SmallWorkspace):
    """The folder of a stream: its code, its settings, its input, and the program that runs the query by Spark alone."""

    def __init__(self, folder: Path, query: str, settings: Sequence[str]) -> None:
        super().__init__(folder, HEADER + query)
        shutil.copy(OWN, folder)
        self.configure(settings)

    def configure(self, settings: Sequence[str]) -> None:
        """The settings of all sessions from now on."""
        self.settings = settings
        lines = ['"{}" = "{}"'.format(*setting.split("=")) for setting in settings]
        (self.folder / "slackwater.toml").write_text("\n".join(['master = "local[2]"', "[spark]", *lines, ""]))

    @property
    def backup(self) -> Path:
        """``checkpoint`` and ``out`` as they were after the first files."""
        return self.folder / "backup"

    @property
    def newest(self) -> int:
        return self.ids("offsets")[-1]

    def arrive(self, first: int, last: int) -> None:
        """Files with four rows each; each begins 15 minutes of event time after the one before."""
        for number in range(first, last):
            self.add(f"f{number}", [number * 15 + minute for minute in (0, 4, 9, 13)], n=number + 1)

    def by_spark_alone(self, checkpoint: Path, trigger: str = "availableNow") -> subprocess.CompletedProcess[str]:
        """The query on a checkpoint, continued by the user's own program until it has caught up or failed."""
        return self.program(OWN.name, str(checkpoint), trigger, *self.settings)

    def program(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A program of the user's in the folder, with Spark."""
        return warm_python.run_program(words, self.folder, attached(self.folder))

    def change_code(self, old: str, new: str) -> None:
        text = (self.folder / "clicks.py").read_text()
        assert old in text
        (self.folder / "clicks.py").write_text(text.replace(old, new))

    def type(self, line: str) -> subprocess.CompletedProcess[str]:
        """Type a line as it was printed; ``apply`` gets the consent that a terminal would ask for, ``run`` an end."""
        words = shlex.split(line)
        if words[0] != "slackwater":
            return subprocess.run(["bash", "-c", line], cwd=self.folder, capture_output=True, text=True, check=False)
        words = words[1:] + {"apply": ["--yes"], "run": ["--until-caught-up"]}.get(words[1], [])
        spark = words[0] in WITH_SPARK or "--pipeline" in words
        return warm_python.run(list(dict.fromkeys(words)), self.folder, attached(self.folder) if spark else {})


Kind = Callable[[Path, str, Sequence[str]], Scene]


@dataclass(frozen=True)
class Stops:
    """Spark fails with these words in its error."""

    words: str


@dataclass(frozen=True)
class Silent:
    """Spark reports success, and the output lacks so many rows, or has so many that are wrong or doubled."""

    lacks: int = 0
    wrong: int = 0


@dataclass(frozen=True)
class Failure:
    """A failure of the catalogue, by its ``code``.

    ``happens``: what is done to the stream's folder. ``spark``: what the query does then, continued by Spark alone.
    ``found``: the first finding of doctor, with its risk and goal. ``typed``: what it prints and what that prints, by
    verb. ``by_hand``: what a person does who follows an advice that is not a command. ``expected``: the rows at the
    end, where they are not those of the uninterrupted query. ``all_arrived``: no file comes after the failure.
    ``rows``: how the output is read, if not as the scene reads it. ``left``: what doctor still finds at the end.
    """

    code: str
    what: str
    happens: Callable[[Scene], None]
    spark: Stops | Silent
    found: str
    risk: str
    goal: str | None
    typed: tuple[str, ...]
    by_hand: Callable[[Scene], None] | None = None
    expected: Callable[[Stream], Rows] | None = None
    doctor: str = "slackwater doctor"
    all_arrived: bool = False
    rows: Callable[[Scene], Rows] | None = None
    left: tuple[str, ...] = ()

    def read(self, scene: Scene) -> Rows:
        return scene.rows() if self.rows is None else self.rows(scene)

    def __str__(self) -> str:
        return f"{self.code} {self.what}"


@dataclass(frozen=True)
class Stream:
    """A stream that has read five of its eight files, as it was saved; ``rows``: of the uninterrupted query."""

    scene: Scene
    saved: Saved
    rows: Rows
    folder: Path

    @property
    def written(self) -> Rows:
        """The rows of the output at the time of the failure."""
        self.saved.restore()
        return self.scene.rows()


def make_stream(folder: Path, query: str, settings: Sequence[str] = SETTINGS, kind: Kind = Scene) -> Stream:
    """Run the stream until it has read five files, with a backup after three."""
    folder.mkdir(exist_ok=True)
    scene = kind(folder / "scene", query, settings)
    scene.arrive(0, BACKED_UP)
    scene.slackwater(*RUN)
    shutil.copytree(scene.checkpoint, scene.backup / "checkpoint")
    shutil.copytree(scene.output, scene.backup / "out")
    scene.arrive(BACKED_UP, READ)
    scene.slackwater(*RUN)
    whole = uninterrupted(folder / "whole", query, settings, kind)
    return Stream(scene, Saved(scene, folder / "saved"), whole, folder)


def uninterrupted(
    folder: Path, query: str, settings: Sequence[str] = SETTINGS, kind: Kind = Scene, files: int = FILES
) -> Rows:
    """The rows of the query when Spark alone reads all files, and nothing happens."""
    whole = kind(folder, query, settings)
    whole.arrive(0, files)
    ended = whole.by_spark_alone(folder / "checkpoint")
    assert ended.returncode == 0, ended.stderr
    return whole.rows()


def changed(query: str, old: str, new: str) -> str:
    assert old in query
    return query.replace(old, new)


def in_gate(failures: Sequence[Failure], *codes: str) -> list[Any]:
    """The failures as parameters of a test, thorough but for the last one of each of these codes."""
    last = {failure.code: failure for failure in failures if failure.code in codes}
    assert set(last) == set(codes)
    return [
        pytest.param(one, marks=[] if last.get(one.code) is one else pytest.mark.thorough, id=str(one))
        for one in failures
    ]


def prove(stream: Stream, failure: Failure, again: Stream | None = None) -> None:
    """The damage; Spark alone; the same damage; doctor, what is typed, and the rows at the end.

    ``again`` is a second stream like the first, for one whose output is a server's, which no copy of a folder restores.
    """
    expected = failure.expected(stream) if failure.expected else stream.rows
    scene = _damaged(stream, failure)
    with_damage = Saved(scene, stream.folder / f"{failure.code} {failure.what}")
    _continue_by_spark(scene, failure, expected)
    if again is None:
        with_damage.restore()
    else:
        scene = _damaged(again, failure)

    first = next(one for one in findings_of(scene, failure.doctor) if one["code"] != "clean")
    assert (first["code"], first["risk"], first.get("goal")) == (failure.found, failure.risk, failure.goal), first
    if failure.by_hand is not None:
        failure.by_hand(scene)
    typed = type_all(scene, failure.doctor)

    assert typed == list(failure.typed)
    assert failure.read(scene) == expected
    assert [one["code"] for one in findings_of(scene, "slackwater doctor") if one["severity"] != "info"] == list(
        failure.left
    )


def _damaged(stream: Stream, failure: Failure) -> Scene:
    stream.saved.restore()
    failure.happens(stream.scene)
    if not failure.all_arrived:
        stream.scene.arrive(READ, FILES)
    return stream.scene


def _continue_by_spark(scene: Scene, failure: Failure, expected: Rows) -> None:
    does, ended = failure.spark, scene.by_spark_alone(scene.checkpoint)
    if isinstance(does, Stops):
        assert ended.returncode == 1, "Spark must stop"
        assert does.words in ended.stderr, ended.stderr
        return
    assert ended.returncode == 0, ended.stderr
    rows = failure.read(scene)
    assert (sum((expected - rows).values()), sum((rows - expected).values())) == (does.lacks, does.wrong), rows


def findings_of(scene: Scene, doctor: str = "slackwater doctor") -> list[dict[str, Any]]:
    shown = scene.type(f"{doctor} --format json")
    assert shown.stdout, shown.stderr
    [stream] = json.loads(shown.stdout)["streams"]
    found: list[dict[str, Any]] = stream["findings"]
    return found


def type_all(scene: Scene, doctor: str = "slackwater doctor") -> list[str]:
    """Type doctor's command, then the one that each prints, and doctor again after one that prints none; the verbs.

    It ends when the stream has run.
    """
    typed: list[str] = []
    line = _first_command(scene, doctor)
    while len(typed) < MOST_TYPED:
        done = scene.type(line)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        verb = _verb(line)
        typed += [] if typed[-1:] == [verb] else [verb]
        if verb == "run":
            return typed
        printed = COMMAND.search(done.stderr)
        line = printed.group(1) if printed is not None else _first_command(scene, doctor)
    raise AssertionError(f"the printed commands do not lead to the end: {typed}")


def _first_command(scene: Scene, doctor: str) -> str:
    """The first command that doctor names, of its gravest finding that has one."""
    found = findings_of(scene, doctor)
    steps = [step for one in found for step in (one.get("next"), one.get("advice")) if step]
    commands = [match.group(1) for match in map(COMMAND.search, steps) if match is not None]
    assert commands, f"doctor names no command: {found}"
    return commands[0]


def _verb(line: str) -> str:
    words = line.split()
    if words[0] != "slackwater":
        return words[0]
    return " ".join(words[1:3]) if words[1] == "plan" else words[1]
