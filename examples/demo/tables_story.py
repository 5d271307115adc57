"""The demo's steps with tables as sinks: each stage is killed between its sink's write and Spark's commit.

After each kill the next command is the one that ``slackwater status`` prints. The last stage loses its checkpoint, too,
and is rebuilt. Every row is then compared with those that plain Python computes from the same input.
"""

from __future__ import annotations

import json
import shlex
import shutil
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from examples.demo import data
from examples.demo.commands import Command, Commands
from examples.demo.compare import Comparison, compare, newest_batch, rows_of_table
from examples.demo.expected import expected_rows
from examples.demo.gold_table import GoldTable
from examples.demo.kill import kill_after_publishing, kill_before_the_commit
from examples.demo.places import GOLD, STREAMS, Workplace
from examples.demo.result import StageKill, TablesResult
from examples.demo.steps import FillTopic, Progress, after_comparison, after_input, step
from examples.demo.story import RAW_FROM_KAFKA
from examples.demo.topic import positions
from slackwater.cli.verbs.init import read_example, with_change
from slackwater.core.checkpoint import Marks
from slackwater.core.errors import StreamFailed
from slackwater.operations.plan import document
from slackwater.operations.plan.plan import Plan

PIPELINE = "weather_tables"
SETTINGS = """"spark.sql.codegen.wholeStage" = false
"spark.sql.streaming.pollingDelay" = "200ms"
"spark.databricks.delta.snapshotPartitions" = 1
"spark.databricks.delta.stats.collect" = false
"""
"""Spark plans each query again for each of its small batches: generating code for one takes longer than running it."""
RAW, DESERIALIZE, REJECTS, _ = STREAMS
LEAST = {RAW: 2, DESERIALIZE: 3}
"""The first batch of a stage that may be the one in which it is killed: some are before it, and most behind it."""


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The plan, and the page that ``slackwater plan`` printed."""

    plan: Plan
    text: str


class TablesStory:
    """One run of the demo. ``fill_topic`` sends the lines to a Kafka topic; without it they are written to files."""

    def __init__(
        self,
        folder: Path,
        commands: Commands,
        progress: Progress,
        table: GoldTable,
        fill_topic: FillTopic | None = None,
    ) -> None:
        self._commands = commands
        self._progress = progress
        self._table = table
        self._fill_topic = fill_topic
        self._folder = folder
        self._place = Workplace(folder / "project", PIPELINE)
        self._started = time.monotonic()

    def run(self) -> TablesResult:
        """Run all steps. Raises SlackwaterError if one fails."""
        lines = data.arriving_lines()
        counted = step(self._progress, "Writing a year of weather", lambda: self._lay_down(lines), after_input)
        kills: list[StageKill] = []
        following = f"slackwater run {self._place.pipeline_file.name}"
        for stream in (RAW, DESERIALIZE, GOLD):
            what = f"Running, kill -9 once {stream} has written a batch"
            kills.append(step(self._progress, what, partial(self._run_and_kill, following, stream), _after_kill))
            following = kills[-1].next
        lost = step(
            self._progress, f"Deleting the checkpoint of {GOLD}", partial(self._lose, kills[-1].batch), _after_loss
        )
        rebuild = step(self._progress, "Planning its rebuild", partial(self._plan, lost.next), _after_plan)
        rebuilt = step(self._progress, "Recomputing its state", self._apply, _after_marks)
        step(self._progress, "Running to the end", self._finish, lambda _: "caught up")
        comparisons = step(self._progress, "Comparing every row", lambda: self._compare(lines), after_comparison)
        return TablesResult(
            source="files" if self._fill_topic is None else "kafka",
            input=counted,
            kills=tuple(kills),
            lost=lost,
            plan=rebuild.plan,
            plan_text=rebuild.text,
            rebuilt=rebuilt,
            comparisons=comparisons,
            seconds=time.monotonic() - self._started,
            folder=None,
        )

    def _lay_down(self, lines: tuple[data.Line, ...]) -> data.Input:
        landing, text = self._folder / "landing", read_example(f"{PIPELINE}.py")
        landing.mkdir(parents=True)
        kafka = self._fill_topic is not None
        self._place.furnish(with_change(text, read_example(RAW_FROM_KAFKA)) if kafka else text, landing)
        with (self._place.folder / "slackwater.toml").open("a", encoding="utf-8") as settings:
            settings.write(SETTINGS)
        (self._place.folder / "weather.py").write_text(read_example("weather.py"), encoding="utf-8")
        return data.lay_down(lines, landing) if self._fill_topic is None else self._fill_topic(lines)

    def _run_and_kill(self, following: str, stream: str) -> StageKill:
        command = self._type(following, f"run-{stream}")
        checkpoint = self._place.checkpoint(stream, 1)
        if stream == GOLD:
            # Above what was planned before the start, so that the batch is one of this run.
            least = max((int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*")), default=0) + 2
            batch = kill_after_publishing(command, checkpoint, self._table, least)
        else:
            table = self._place.output(stream)
            batch = kill_before_the_commit(command, checkpoint, partial(newest_batch, table), LEAST[stream])
        return self._status(stream, batch)

    def _lose(self, batch: int) -> StageKill:
        shutil.rmtree(self._place.checkpoint(GOLD, 1))
        return self._status(GOLD, batch)

    def _plan(self, following: str) -> Rebuild:
        text = self._commands.finish(self._type(f"{following} --out plan.json", "plan"))
        plan_file = self._place.folder / "plan.json"
        page = text.replace(f"{self._folder}/", "").rstrip()
        return Rebuild(document.parse(plan_file.read_text(encoding="utf-8"), plan_file), page)

    def _apply(self) -> Marks:
        self._commands.finish(self._type("slackwater apply plan.json --yes", "apply"))
        return self._status(GOLD, -1).marks

    def _finish(self) -> None:
        command = f"slackwater run {self._place.pipeline_file.name} --until-caught-up"
        self._commands.finish(self._type(command, "run-to-the-end"))

    def _status(self, stream: str, batch: int) -> StageKill:
        command = self._type(f"slackwater status {PIPELINE}/{stream} --format json", f"status-{stream}")
        command.running.wait()
        # Its exit code is that of what it finds.
        try:
            found: dict[str, Any] = json.loads(command.stdout.read_text(encoding="utf-8"))["streams"][0]
        except ValueError:
            self._commands.finish(command)
            raise
        # Typed in the folder of the pipeline, where its path is its name.
        following = found["next"].replace(f"{self._place.folder}/", "")
        return StageKill(stream, batch, Marks(**found["marks"]), found["verdict"]["text"], following)

    def _type(self, command: str, name: str) -> Command:
        """Start a command of Slackwater as it is printed."""
        program, *arguments = shlex.split(command)
        if program != "slackwater":
            raise StreamFailed("demo-step", f"Step {name} of the demo has no command", found=command)
        return self._commands.start(name, ["-m", "slackwater", *arguments], self._place.folder)

    def _compare(self, lines: tuple[data.Line, ...]) -> tuple[Comparison, ...]:
        expected = expected_rows(lines, data.file_names(lines) if self._fill_topic is None else positions(lines))
        written = {stream: rows_of_table(self._place.output(stream)) for stream in (RAW, DESERIALIZE, REJECTS)}
        written[GOLD] = self._table.rows()
        return tuple(compare(stream, expected[stream], written[stream]) for stream in STREAMS)


def _after_kill(killed: StageKill) -> str:
    return f"batch {killed.batch} is in the table, not among Spark's commits"


def _after_loss(lost: StageKill) -> str:
    return lost.verdict


def _after_plan(rebuild: Rebuild) -> str:
    facts = rebuild.plan.facts
    return f"continue after batch {facts.target}, batches {facts.contributing} to {facts.target} contribute"


def _after_marks(marks: Marks) -> str:
    return f"next batch {marks.next_batch}"
