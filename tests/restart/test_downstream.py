"""A bug of the first of three stages, corrected: all go back, killed in the middle, and the last one is exact."""

import hashlib
import json
import shlex
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, SCHEMA, FileClicks, Workspace
from tests.support.killing import kill_at_call
from tests.support.outputs import Rows, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
PIPELINE = f"""
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("web")
SCHEMA = "{SCHEMA}"


@pipeline.stream(sink=sw.sinks.files("parquet", "raw"))
def raw(spark):
    landing = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json("landing")
    return landing.withColumn("n", N)


@pipeline.stream(sink=sw.sinks.files("parquet", "clean"))
def clean(spark, context):
    return spark.readStream.schema(SCHEMA).parquet(context.output("raw")).dropDuplicates(["ts", "page", "n"])


@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark, context):
    rows = spark.readStream.schema(SCHEMA).parquet(context.output("clean"))
    return rows.withWatermark("ts", "1 hour").groupBy(F.window("ts", "1 hour"), "page").agg(F.sum("n").alias("n"))
"""
WRONG, RIGHT = (
    'F.when(F.col("ts") < F.lit("2024-01-01T01:00:00Z").cast("timestamp"), F.col("n")).otherwise(-1)',
    'F.col("n")',
)


class Stages(Workspace):
    """Three streams, each of which reads the files of the one before."""

    def __init__(self, folder: Path, code: str) -> None:
        folder.mkdir()
        super().__init__(folder, FileClicks())
        self.write(code)

    def write(self, code: str) -> None:
        (self.folder / "clicks.py").write_text(PIPELINE.replace('"n", N', f'"n", {code}'))

    def caught_up(self) -> Rows:
        """Run all until nothing is left, and return what the last one has written."""
        self.run()
        return rows_of(self.output)

    def bytes(self) -> dict[str, str]:
        """Every file of the checkpoints and outputs, with the hash of its content."""
        folders = [self.folder / name for name in ("raw", "clean", "out")]
        folders += sorted((self.folder / ".slackwater" / "streams" / "web").glob("*/checkpoints"))
        files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def plan(self) -> list[str]:
        """Plan to process everything since the bug again, in all stages; the streams in their order."""
        arguments = ("plan", "replay", "raw", "--from", "batch:4", "--downstream", "--out", "plan.json", "--force")
        self.slackwater(*arguments, java=False)
        plan = json.loads((self.folder / "plan.json").read_text())
        return [plan["stream"], *(stage["stream"] for stage in plan["downstream"])]

    def killed_apply(self, event: str, function: str, *settings: str) -> None:
        """Apply, and kill -9 at a point; without settings there is no Java: nothing may need Spark."""
        environment = {} if settings else {"JAVA_HOME": str(self.folder)}
        kill_at_call(event, function, ("apply", "plan.json", "--yes", *settings), self.folder, **environment)

    def type_next(self, words: str, *settings: str) -> None:
        """Type the command that ``status`` prints for ``per_page`` and that has these words; settings are for Spark."""
        shown = self.slackwater("status", "per_page", code=5).stdout
        line = next(line for line in shown.splitlines() if words in line)
        command = line[line.index(words) :].removeprefix("slackwater ")
        self.slackwater(*shlex.split(command), *settings, java=bool(settings))

    def plan_reset(self) -> None:
        """Plan to begin again in all stages, with new outputs next to the old ones."""
        self.slackwater("plan", "reset", "raw", "--downstream", "--out", "plan.json", "--force", *CONF)


AFTER_THE_FIRST_STAGE = ("return", "apply/executor.py:execute")
BEFORE_THE_LAST_SWITCH = ("call", "actions/switching.py:SwitchGeneration.do:3")


@pytest.mark.thorough
def test_a_bug_of_the_first_stage_is_taken_out_of_all(tmp_path: Path) -> None:
    expected = Stages(tmp_path / "right", RIGHT).caught_up()
    stages = Stages(tmp_path / "wrong", WRONG)
    assert stages.caught_up() != expected
    before = stages.bytes()
    stages.write(RIGHT)

    assert stages.plan() == ["web/raw", "web/clean", "web/per_page"]
    stages.killed_apply(*AFTER_THE_FIRST_STAGE)
    stages.type_next("slackwater undo")
    assert stages.bytes() == before

    stages.plan()
    stages.killed_apply(*BEFORE_THE_LAST_SWITCH)
    stages.type_next("slackwater apply")

    assert stages.caught_up() == expected


def test_all_stages_are_reset_after_the_first_has_landed_bad_rows(tmp_path: Path) -> None:
    expected = Stages(tmp_path / "right", RIGHT).caught_up()
    stages = Stages(tmp_path / "wrong", WRONG)
    assert stages.caught_up() != expected
    before = stages.bytes()
    stages.write(RIGHT)

    stages.plan_reset()
    stages.killed_apply(*AFTER_THE_FIRST_STAGE, *CONF)
    stages.type_next("slackwater undo")
    assert stages.bytes() == before

    stages.plan_reset()
    stages.killed_apply(*BEFORE_THE_LAST_SWITCH, *CONF)
    stages.type_next("slackwater apply", *CONF)
    assert stages.caught_up() == expected
