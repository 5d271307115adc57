"""Stopping: a drain finishes the running batch and starts no other, whoever requests it; nothing is left behind."""

import os
import signal
import sqlite3

import pytest

from tests.runtime.project import Project
from tests.support.processes import Command

pytestmark = pytest.mark.spark

# One function in the file, one in a module next to it: both must reach Spark's Python workers.
SLOW = """
import time
import slackwater as sw
from beside import double
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")

def slow(number):
    time.sleep({seconds})
    return double(number)

@pipeline.stream(sink=sw.sinks.files("json", "out"))
def rows(spark):
    source = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")
    return source.withColumn("twice", F.udf(slow, "long")("id"))
"""
BESIDE = "def double(number):\n    return 2 * number\n"

TWO = """
import slackwater as sw

pipeline = sw.Pipeline("work")

def source(spark):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")

for name in ("one", "other"):
    pipeline.stream(name=name, sink=sw.sinks.files("json", f"out/{name}"), trigger="300 milliseconds")(source)
"""


def _slow(project: Project, seconds: float) -> Command:
    project.write(SLOW.format(seconds=seconds))
    project.write(BESIDE, "beside.py")
    project.add_files(40)
    return project.start("run", "pipeline.py")


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.thorough), signal.SIGTERM], ids=["ctrl-c", "sigterm"]
)
def test_a_signal_to_the_whole_group_drains(project: Project, number: signal.Signals) -> None:
    command = _slow(project, 1.5)
    command.wait_for(lambda: project.planned("rows") > project.committed("rows") >= 1, "a batch runs")
    running = project.planned("rows")

    command.signal_group(number)
    code = command.end()

    assert code == 0, command.log
    assert (project.planned("rows"), project.committed("rows")) == (running, running), command.log
    assert project.ids("out") == list(range(running + 1))
    assert "draining: no batch starts after the running one" in command.log
    assert project.runs("rows")[-1].end == "stopped"
    assert command.gone_within(5), f"{command.alive()} are left:\n{command.log}"


def test_a_second_signal_stops_at_once(project: Project) -> None:
    command = _slow(project, 300)
    command.wait_for(lambda: project.planned("rows") == 0, "a batch runs")
    command.signal_group(signal.SIGINT)
    command.wait_for(lambda: "draining:" in command.log, "the drain starts")
    command.signal_group(signal.SIGINT)

    assert command.end(60) == 130, command.log
    assert (project.planned("rows"), project.committed("rows")) == (0, -1), command.log
    assert project.runs("rows")[-1].end == "interrupted"
    assert command.gone_within(10), f"{command.alive()} are left:\n{command.log}"


def test_ctrl_c_while_spark_starts_leaves_nothing(project: Project) -> None:
    command = _slow(project, 0)
    command.wait_for(lambda: bool(command.jvms), "the JVM is started")

    command.signal_group(signal.SIGINT)

    assert command.end(60) == 130, command.log
    assert "Traceback" not in command.log
    assert command.gone_within(20), f"{command.alive()} are left:\n{command.log}"
    with project.ledger() as ledger:
        lease = ledger.lease("work/rows")
    assert lease is not None
    assert lease.holder is None


def test_one_stream_is_asked_to_stop_and_the_other_continues(project: Project) -> None:
    project.write(TWO)
    project.add_files(200)
    command = project.start("run", "pipeline.py")
    command.wait_for(lambda: min(project.committed("one"), project.committed("other")) >= 1, "both run")

    _ask_to_stop(project, "one")
    command.wait_for(lambda: project.runs("one")[-1].end is not None, "the asked one ends")
    reached = project.committed("other")
    command.wait_for(lambda: project.committed("other") > reached, "the other one continues")
    _ask_to_stop(project, "other")

    assert command.end() == 0, command.log
    for name in ("one", "other"):
        assert project.runs(name)[-1].end == "stopped", command.log
        assert project.planned(name) == project.committed(name), command.log
        assert project.ids(f"out/{name}") == list(range(project.planned(name) + 1))
    assert project.committed("one") < project.committed("other")
    assert command.log.count("work/one stopped") == 1, command.log


def _ask_to_stop(project: Project, stream: str) -> None:
    with project.ledger() as ledger:
        assert ledger.request_stop(f"work/{stream}") is not None


def test_a_run_drains_when_its_time_is_up(project: Project) -> None:
    project.write(TWO)
    project.add_files(200)
    command = project.run("--for", "4s", "--stream", "other")

    assert "draining: no batch starts after the running one" in command.log
    assert project.runs("other")[-1].end == "stopped"
    assert project.planned("other") == project.committed("other"), command.log
    assert project.runs("one") == []


def test_a_broken_ledger_and_a_dead_jvm(project: Project) -> None:
    project.write(TWO)
    project.add_files(400)
    command = project.start("run", "pipeline.py", "--stream", "one")
    command.wait_for(lambda: project.committed("one") >= 1, "batches are committed")

    with sqlite3.connect(project.home.ledger_url) as database:
        database.execute("ALTER TABLE log_lines RENAME TO lost_lines")
        database.execute("ALTER TABLE batches RENAME TO lost_batches")
    reached = project.committed("one")
    command.wait_for(lambda: project.committed("one") > reached + 3, "the query continues without its ledger")
    command.wait_for(lambda: "progress was not recorded" in command.log, "the error is logged")

    [jvm] = command.jvms
    os.kill(jvm, signal.SIGKILL)

    assert command.end(60) == 7, command.log
    assert "Traceback" not in command.log
    assert "Spark no longer answers" in command.log
    assert "batches were not recorded in the ledger" in command.log
    last = project.runs("one")[-1]
    assert (last.end, str(last.reason)[:24]) == ("failed", "Spark no longer answers:")
