"""The demo's steps, in order: run, kill -9, upgrade, plan, apply, run on; then the same uninterrupted, and compare."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from examples.demo import data, manual_restart
from examples.demo.commands import Commands
from examples.demo.compare import Comparison, Row, compare, rows_of, timestamp_of, up_to_then
from examples.demo.kill import KillPoint, kill_in_the_middle
from examples.demo.places import GOLD, STREAMS, Workplace
from examples.demo.result import DemoResult, ManualRestart, StreamMarks
from examples.demo.source_files import files_taken, planned, rows_in
from examples.demo.steps import FillTopic, Progress, after_comparison, after_input, step
from slackwater.cli.verbs.init import read_example, with_change, with_stream_of_change
from slackwater.core.checkpoint import Marks
from slackwater.operations.plan import document
from slackwater.operations.plan.plan import Plan

UPGRADE = "changes/upgraded_gold.py"
RAW_FROM_KAFKA = "changes/raw_from_kafka.py"
UPGRADED_OUTPUT = "out/gold-upgraded"
UPGRADED_STREAM = f'''@pipeline.stream(name="{GOLD}-upgraded", sink=sw.sinks.files("parquet", "{UPGRADED_OUTPUT}"))
def upgraded_gold(spark: SparkSession, context: sw.StreamContext) -> DataFrame:
    return upgraded_daily(stored_readings(spark, context))
'''


@dataclass(frozen=True, slots=True)
class Killed:
    """The pipeline after ``kill -9``: the batch that was cut off, all marks, and a copy of the gold stage."""

    batch: int
    marks: tuple[StreamMarks, ...]
    copy: manual_restart.GoldCopy


@dataclass(frozen=True, slots=True)
class Restart:
    """The plan, and the page that ``slackwater plan`` printed."""

    plan: Plan
    text: str


class Story:
    """One run of the demo. ``fill_topic`` sends the lines to a Kafka topic; without it they are written to files."""

    def __init__(
        self, folder: Path, commands: Commands, progress: Progress, fill_topic: FillTopic | None = None
    ) -> None:
        self._commands = commands
        self._progress = progress
        self._fill_topic = fill_topic
        self._folder = folder
        self._landing = folder / "landing"
        self._interrupted = Workplace(folder / "interrupted")
        self._uninterrupted = Workplace(folder / "uninterrupted")
        self._manual_folder = folder / "manual-restart"
        self._started = time.monotonic()

    def run(self) -> DemoResult:
        """Run all steps. Raises SlackwaterError if one fails."""
        laid_down = step(self._progress, "Writing a year of weather", self._lay_down, after_input)
        killed = step(
            self._progress, "Running the pipeline, kill -9 in the middle of a batch", self._run_and_kill, _after_kill
        )
        restart = step(self._progress, "Upgrading the gold stage, planning its restart", self._upgrade, _after_plan)
        restarted = step(
            self._progress, "Recomputing its state from the contributing batches", self._apply, _after_marks
        )
        after = step(self._progress, "Running the upgraded pipeline to the end", self._finish, lambda _: "caught up")
        step(self._progress, "Running old and new code uninterrupted", self._run_uninterrupted, lambda _: "caught up")
        expected = self._expected_gold(killed.copy, restart.plan.facts.target)
        usual = step(
            self._progress,
            "Trying the popular manual restart on a copy",
            lambda: self._manual_restart(killed, expected),
            _after_manual_restart,
        )
        comparisons = step(self._progress, "Comparing every row", lambda: self._compare(expected), after_comparison)
        return DemoResult(
            source="files" if self._fill_topic is None else "kafka",
            input=laid_down,
            killed_batch=killed.batch,
            before=killed.marks,
            plan=restart.plan,
            plan_text=restart.text,
            restarted=restarted,
            after=after,
            rows_read_again=_rows_read_again(killed.copy, restart.plan),
            rows_read=rows_of(self._interrupted.output("sensor-deserialize")).total(),
            comparisons=comparisons,
            manual_restart=usual,
            seconds=time.monotonic() - self._started,
            folder=None,
        )

    def _pipeline(self) -> str:
        text = read_example("weather.py")
        return text if self._fill_topic is None else with_change(text, read_example(RAW_FROM_KAFKA))

    def _lay_down(self) -> data.Input:
        lines, text, upgrade = data.arriving_lines(), self._pipeline(), read_example(UPGRADE)
        self._landing.mkdir(parents=True)
        self._interrupted.furnish(text, self._landing)
        both = with_stream_of_change(text, upgrade, renamed="upgraded_daily", stream=UPGRADED_STREAM)
        self._uninterrupted.furnish(both, self._landing)
        return data.lay_down(lines, self._landing) if self._fill_topic is None else self._fill_topic(lines)

    def _run_and_kill(self) -> Killed:
        place = self._interrupted
        command = self._commands.start("run-killed", ["-m", "slackwater", "run", "weather.py"], place.folder)
        half_way = data.FILES // 2
        batch = kill_in_the_middle(command, KillPoint(place.checkpoint(GOLD, 1), place.output(GOLD), half_way))
        return Killed(batch, self._status("killed"), manual_restart.keep(place, self._manual_folder))

    def _upgrade(self) -> Restart:
        place = self._interrupted
        place.pipeline_file.write_text(with_change(self._pipeline(), read_example(UPGRADE)), encoding="utf-8")
        text = self._commands.slackwater("plan", ["plan", "rebuild", GOLD, "--out", "plan.json"], place.folder)
        plan_file = place.folder / "plan.json"
        page = text.replace(f"{self._folder}/", "").rstrip()
        return Restart(document.parse(plan_file.read_text(encoding="utf-8"), plan_file), page)

    def _apply(self) -> StreamMarks:
        self._commands.slackwater("apply", ["apply", "plan.json", "--yes"], self._interrupted.folder)
        return next(line for line in self._status("restarted") if line.stream == GOLD)

    def _finish(self) -> tuple[StreamMarks, ...]:
        arguments = ["run", "weather.py", "--until-caught-up"]
        self._commands.slackwater("run-to-the-end", arguments, self._interrupted.folder)
        return self._status("end")

    def _status(self, when: str) -> tuple[StreamMarks, ...]:
        arguments = ["status", "--format", "json"]
        text = self._commands.slackwater(f"status-{when}", arguments, self._interrupted.folder)
        streams = {stream["name"]: stream["marks"] for stream in json.loads(text)["streams"]}
        return tuple(StreamMarks(name, Marks(**streams[name])) for name in STREAMS)

    def _run_uninterrupted(self) -> None:
        folder = self._uninterrupted.folder
        self._commands.slackwater("run-uninterrupted", ["run", "weather.py", "--until-caught-up"], folder)

    def _expected_gold(self, copy: manual_restart.GoldCopy, written: int) -> Counter[Row]:
        """Days written up to the last written batch by the old code, later ones by the new code.

        A day is written by the first batch whose watermark has passed its end, so the watermark of the last written
        batch divides the days, whatever batches the uninterrupted run was cut into.
        """
        watermark_ms = planned(copy.old_checkpoint, written).watermark_ms
        watermark = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=watermark_ms)
        return up_to_then(
            rows_of(self._uninterrupted.output(GOLD)),
            rows_of(self._uninterrupted.folder / UPGRADED_OUTPUT),
            lambda row: timestamp_of(row, "day") + timedelta(days=1) <= watermark,
        )

    def _manual_restart(self, killed: Killed, expected: Counter[Row]) -> ManualRestart:
        committed = next(line.marks.committed for line in killed.marks if line.stream == GOLD)
        return manual_restart.try_manual_restart(
            self._commands, killed.copy, self._interrupted, expected, committed=committed
        )

    def _compare(self, expected_gold: Counter[Row]) -> tuple[Comparison, ...]:
        def expected(stream: str) -> Counter[Row]:
            return expected_gold if stream == GOLD else rows_of(self._uninterrupted.output(stream))

        return tuple(compare(name, expected(name), rows_of(self._interrupted.output(name))) for name in STREAMS)


def _rows_read_again(copy: manual_restart.GoldCopy, plan: Plan) -> int:
    """The rows of the files that the contributing batches had read."""
    return rows_in(files_taken(copy.old_checkpoint, plan.facts.contributing - 1, plan.facts.target))


def _after_kill(killed: Killed) -> str:
    return f"killed in batch {killed.batch} of {GOLD}"


def _after_plan(restart: Restart) -> str:
    facts = restart.plan.facts
    return f"continue after batch {facts.target}, batches {facts.contributing} to {facts.target} contribute"


def _after_marks(line: StreamMarks) -> str:
    return f"next batch {line.marks.next_batch}"


def _after_manual_restart(outcome: ManualRestart) -> str:
    return f"{outcome.lost} of {outcome.expected_rows} rows lost"
