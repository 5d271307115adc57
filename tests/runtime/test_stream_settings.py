"""Settings of a stream: its session's alone, recorded, compared and replayed; what a session cannot have is refused."""

import ast
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from slackwater.core.errors import PipelineError
from slackwater.runtime.loader import load
from tests.runtime.project import Project
from tests.support.errors import raises_code
from tests.support.outputs import rows_of

PIPELINE = """import slackwater as sw
from pyspark.sql import SparkSession, functions as F

pipeline = sw.Pipeline("work")

def hours(spark):
    assert SparkSession.getActiveSession()._jsparkSession.sessionUUID() == spark._jsparkSession.sessionUUID()
    rows = spark.readStream.schema("id long, at timestamp").option("maxFilesPerTrigger", 1).json("in")
    days = rows.withWatermark("at", "0 seconds").groupBy(F.window("at", "1 minute")).count()
    return days.select(F.date_format("window.start", "HH:mm").alias("at"), "count")

@pipeline.stream(sink=sw.sinks.files("parquet", "tokyo"), settings={settings})
def tokyo(spark):
    return hours(spark)

@pipeline.stream(sink=sw.sinks.files("parquet", "utc"))
def utc(spark):
    return hours(spark)
"""
TOKYO = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.shuffle.partitions": 2}
UNTIL = ("--until-caught-up", "--conf", "spark.sql.session.timeZone=UTC")


def write(project: Project, settings: dict[str, object]) -> None:
    project.write(PIPELINE.replace("{settings}", repr(settings)))


def hours_of(project: Project, stream: str) -> Counter[str]:
    rows: Counter[str] = Counter()
    for row, count in rows_of(project.folder / stream).items():
        rows[dict(ast.literal_eval(row))["at"]] += count
    return rows


@pytest.mark.spark
def test_settings_hold_for_their_stream_and_in_its_replays(project: Project) -> None:
    project.add_files(3)
    write(project, TOKYO)
    project.run(*UNTIL)

    assert hours_of(project, "tokyo") == Counter(["09:00", "09:01"])
    assert hours_of(project, "utc") == Counter(["00:00", "00:01"])
    with project.ledger() as ledger:
        recorded = {name: ledger.last_run(f"work/{name}") for name in ("tokyo", "utc")}
    settings = {name: (run.settings or {}) if run is not None else {} for name, run in recorded.items()}
    assert settings["tokyo"].items() >= {name: str(value) for name, value in TOKYO.items()}.items()
    assert settings["utc"]["spark.sql.session.timeZone"] == "UTC"
    assert settings["utc"]["spark.sql.shuffle.partitions"] == "1"
    checkpoints = {name: Path(str(project.home.checkpoint("work", name, 1))) for name in settings}
    states = {name: checkpoint / "state" / "0" for name, checkpoint in checkpoints.items()}
    assert {name: len([one for one in path.iterdir() if one.name.isdigit()]) for name, path in states.items()} == {
        "tokyo": 2,
        "utc": 1,
    }

    # Other partitions have no effect on the checkpoint, which is said; another zone changes what the state means.
    write(project, TOKYO | {"spark.sql.shuffle.partitions": 5})
    project.add_files(1)
    said = project.run(*UNTIL).log
    assert "work/tokyo: spark.sql.shuffle.partitions is 5 in the settings of the stream, and Spark uses 2" in said
    write(project, {"spark.sql.session.timeZone": "Europe/Berlin"})
    project.slackwater("check", "pipeline.py", *UNTIL[1:], expected=1)

    # A replay is under the settings of the runs, also where the stream has none any more.
    write(project, TOKYO)
    shutil.rmtree(checkpoints["tokyo"])
    plan = project.slackwater("plan", "rebuild", "work/tokyo", "--out", "plan.json", *UNTIL[1:]).log
    assert "spark.sql.session.timeZone=Asia/Tokyo" in plan
    project.slackwater("apply", "plan.json", "--yes", *UNTIL[1:])
    project.add_files(1)
    project.run(*UNTIL)
    assert hours_of(project, "tokyo") == Counter(["09:00", "09:01", "09:02", "09:03"])
    assert hours_of(project, "utc") == Counter(["00:00", "00:01", "00:02", "00:03"])

    for name, value, code in (
        ("spark.sql.warehouse.dir", "here", "stream-setting-static"),
        ("spark.executor.memory", "1g", "stream-setting-static"),
        ("spark.sql.shuffle.partitions", "many", "stream-setting"),
    ):
        write(project, {name: value})
        refused = project.run("--until-caught-up", "--stream", "tokyo", expected=2).log
        assert f"error {code}:" in refused
        assert name in refused


@pytest.mark.spark
def test_a_class_that_cannot_be_loaded_is_no_agreement(project: Project) -> None:
    project.add_files(1)
    write(project, {"spark.sql.streaming.commitProtocolClass": "org.example.Absent"})
    provider = "spark.sql.streaming.stateStore.providerClass=org.example.NoProvider"

    log = project.slackwater("check", "pipeline.py", "--conf", provider, "--format", "json", expected=2).log

    tokyo, utc = json.loads(log[log.index("{\n") : log.rindex("\n}") + 2])["streams"]
    assert (tokyo["error"]["code"], utc["error"]["code"]) == ("stream-setting", "stream-setting")
    assert tokyo["error"]["found"] == utc["error"]["found"] == "org.example.NoProvider"
    assert "correct it in --conf" in utc["error"]["hint"]


@pytest.mark.parametrize("settings", ["{'spark.x': None}", "{'x': 1}", "['spark.x']", "{1: 2}", "'spark.x=1'"])
def test_what_is_no_setting_is_refused_as_it_is_written(tmp_path: Path, settings: str) -> None:
    (tmp_path / "p.py").write_text(PIPELINE.replace("{settings}", settings))

    with raises_code(PipelineError, "stream-settings"):
        load(str(tmp_path / "p.py"))
