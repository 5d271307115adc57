"""``--until-caught-up``: stages in order, each to its end; what was broken stops only what reads it."""

import os
import pty
import re
import select
import subprocess
import sys

import pytest

from tests.runtime.project import Project

pytestmark = pytest.mark.spark

PIPELINE = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")

# Written in the wrong order on purpose: what reads what is known when the functions have run.
@pipeline.stream(sink=sw.sinks.files("json", "out/third"))
def third(spark, context):
    rows = spark.readStream.schema("id LONG, at TIMESTAMP, zone STRING").json(context.output("second"))
    hours = rows.withWatermark("at", "1 minute").groupBy(F.window("at", "1 minute"))
    return hours.agg(F.max("id").alias("id"), F.first("zone").alias("zone"))

@pipeline.stream(sink=sw.sinks.files("json", "out/second"))
def second(spark, context):
    rows = spark.readStream.schema("id LONG, at TIMESTAMP").json(context.output("first"))
    return rows.withColumn("zone", F.lit(spark.conf.get("spark.work.zone", "none")))

@pipeline.stream(sink=sw.sinks.files("json", "out/first"))
def first(spark):
    return spark.readStream.schema("id LONG, at TIMESTAMP").option("maxFilesPerTrigger", 4).json("in")

@pipeline.stream(sink=sw.sinks.files("json", "out/broken"))
def broken(spark, context):
    rows = spark.readStream.schema("id LONG").json(context.output("first"))
    return rows.withColumn("fails", F.expr("raise_error('broken on purpose')"))

@pipeline.stream(sink=sw.sinks.files("json", "out/reads_broken"))
def reads_broken(spark, context):
    return spark.readStream.schema("id LONG").json(context.output("broken"))

@pipeline.stream(sink=sw.sinks.files("json", "out/reads_that"))
def reads_that(spark, context):
    return spark.readStream.schema("id LONG").json(context.output("reads_broken"))
"""
STAGES = ("first", "second", "third")


def test_stages_in_order_and_a_subset_on_a_terminal(project: Project) -> None:
    project.write(PIPELINE)
    project.add_files(12)

    command = project.run("--until-caught-up", "--conf", "spark.work.zone=east", expected=7)

    assert project.ids("out/first") == project.ids("out/second") == list(range(12))
    # The watermark is a minute behind the newest row: its own window and the one before are still open.
    assert project.ids("out/third") == list(range(10)), command.log
    assert '"zone":"east"' in "".join(file.read_text() for file in (project.folder / "out/second").glob("*.json"))
    started = [project.runs(name)[0].started_ms for name in STAGES]
    ended = [project.runs(name)[0].ended_ms or 0 for name in STAGES]
    assert ended[0] <= started[1], command.log
    assert ended[1] <= started[2], command.log
    assert re.search(
        r"^\d\d:\d\d:\d\d work/first batch=2 rows=4 rows/s=\S+ lag=unknown state=0 watermark=-$",
        command.log,
        re.MULTILINE,
    )
    assert "work/broken: failed: " in command.log
    assert "broken on purpose" in str(project.runs("broken")[0].reason)
    assert "work/reads_broken: not-started: broken, whose output it reads, failed" in command.log
    assert "work/reads_that: not-started: reads_broken, whose output it reads, was not started" in command.log

    project.add_files(8)
    shown = _on_a_terminal(project, "--until-caught-up", "--stream", "third", "--stream", "first", "--stream", "second")

    assert project.ids("out/third") == list(range(18)), shown
    assert len(project.runs("broken")) == 1, shown
    for column in ("stream", "state", "batch", "rows/s", "lag", "watermark", "state rows"):
        assert column in shown, shown
    rows = re.findall(r"work/third +finished +\d+ +[\d,]+ +unknown +(\S+ \S+ UTC) +(\d+)", shown)
    assert rows, shown
    assert rows[-1] == ("2026-01-01 00:18:00 UTC", "2"), shown
    assert not re.search(r"^\d\d:\d\d:\d\d work/", shown, re.MULTILINE), shown


def _on_a_terminal(project: Project, *arguments: str) -> str:
    """What a run draws on a terminal of 120 columns, without its escape sequences."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "slackwater", "run", "pipeline.py", *arguments],
        cwd=project.folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(theirs)
    drawn = b""
    while select.select([ours], [], [], 120)[0]:
        try:
            drawn += os.read(ours, 65536)
        except OSError:  # a terminal whose other side is closed
            break
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn.decode()).replace("\r", "")
    assert process.wait(30) == 0, text
    return text
