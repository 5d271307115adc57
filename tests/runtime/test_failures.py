"""Failures: a permanent one stops its stream alone; one that may pass is tried again, a few times, with each reason."""

from __future__ import annotations

from functools import partial

import pytest

from slackwater.runtime import failures
from slackwater.runtime.session import spark_version
from tests.runtime.project import Project

PIPELINE = """
import socket
from pathlib import Path

import slackwater as sw
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")

def source(spark):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")

def refuse_three(number):
    if number == 3:
        raise ValueError("row three is bad")
    return number

class FailsOnce:
    '''A writer whose first start meets a checkpoint store that does not answer.'''

    def __init__(self, writer):
        self.writer = writer

    def start(self):
        mark = Path("failed-once")
        if mark.exists():
            return self.writer.start()
        mark.touch()
        raise PySparkException("java.net.ConnectException: Connection refused")

class FlakySink(sw.sinks.FilesSink):
    def attach(self, writer):
        return FailsOnce(super().attach(writer))

def json_files(name):
    return sw.sinks.files("json", f"out/{name}")

pipeline.stream(name="available", sink=json_files("available"), trigger=sw.triggers.available_now())(source)
pipeline.stream(name="once", sink=json_files("once"), trigger=sw.triggers.once())(source)
pipeline.stream(name="ticking", sink=json_files("ticking"), trigger="200 milliseconds")(source)
pipeline.stream(name="flaky", sink=FlakySink("json", "out/flaky"), trigger=sw.triggers.available_now())(source)

@pipeline.stream(sink=json_files("bad"))
def bad(spark):
    return source(spark).withColumn("same", F.udf(refuse_three, "long")("id"))

@pipeline.stream(sink=json_files("refused"))
def refused(spark):
    # A port that was free a moment ago and that nobody listens on.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return spark.readStream.format("socket").option("host", "127.0.0.1").option("port", port).load()
"""


@pytest.mark.spark
def test_each_stream_ends_in_its_own_way(project: Project) -> None:
    project.write(PIPELINE)
    project.add_files(6)
    command = project.start("run", "pipeline.py")
    for name, runs in (("available", 1), ("once", 1), ("flaky", 2), ("bad", 1), ("refused", 3)):
        command.wait_for(partial(_has_ended, project, name, runs), f"{name} ends after {runs} runs")
    project.add_files(1)
    command.wait_for(lambda: project.committed("ticking") == 6, "what does not fail goes on")
    with project.ledger() as ledger:
        ledger.request_stop("work/ticking")

    assert command.end() == 7, command.log
    assert project.ids("out/available") == list(range(6))
    assert (project.ids("out/once"), project.planned("once")) == (list(range(6)), 0)
    assert project.ids("out/flaky") == list(range(6))
    assert project.ids("out/ticking") == list(range(7))
    assert project.ids("out/bad") == [0, 1, 2]

    ends = {name: [(run.end, run.reason) for run in project.runs(name)] for name in ("bad", "refused", "flaky")}
    assert ends["bad"] == [("failed", "ValueError: row three is bad")]
    # Spark 3.5 tells the reason without its class.
    refused = "Connection refused" if spark_version().startswith("3.") else "ConnectException: Connection refused"
    assert ends["refused"] == [("failed", refused)] * 3
    assert [end for end, _ in ends["flaky"]] == ["failed", "finished"]
    assert "Connection refused" in str(ends["flaky"][0][1])
    assert f"work/refused: {refused}; restart 2 of 2 in 2 s" in command.log
    assert "work/bad: failed: ValueError: row three is bad" in command.log


def _has_ended(project: Project, name: str, runs: int) -> bool:
    return [run.end is None for run in project.runs(name)] == [False] * runs


def test_a_continuous_trigger_on_files_is_refused_before_spark_starts(project: Project) -> None:
    project.write(
        'import slackwater as sw\npipeline = sw.Pipeline("work")\n'
        '@pipeline.stream(sink=sw.sinks.files("json", "out"), trigger=sw.triggers.continuous("1 second"))\n'
        "def rows(spark):\n    raise AssertionError('Spark has started')\n"
    )
    command = project.run(expected=2)
    assert "trigger-continuous" in command.log
    assert not project.checkpoint("rows").exists()


SPARK_TEXT = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost \
task 0.0 in stage 3.0 (TID 3) (localhost executor driver): org.apache.spark.api.python.PythonException: Traceback \
(most recent call last):
  File "pipeline.py", line 3, in bad
    raise ValueError("no")
ValueError: no

	at org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:645)
Driver stacktrace:
=== Streaming Query ===
Logical Plan: Project ['Connection refused', java.net.ConnectException: said the user]
"""


@pytest.mark.parametrize(
    ("text", "reason", "transient"),
    [
        (SPARK_TEXT, "ValueError: no", False),
        (
            "java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.TimeoutException: Timed out",
            "TimeoutException: Timed out",
            True,
        ),
        ("ConnectionResetError: [Errno 104] by peer", "ConnectionResetError: [Errno 104] by peer", True),
        ("[DIVIDE_BY_ZERO] Division by zero", "[DIVIDE_BY_ZERO] Division by zero", False),
    ],
)
def test_the_innermost_cause_decides(text: str, reason: str, *, transient: bool) -> None:
    error = RuntimeError(text)
    assert (failures.reason_of(error), failures.is_transient(error)) == (reason, transient)


def test_a_cause_behind_others_is_found() -> None:
    error = RuntimeError("the query failed")
    error.__cause__ = RuntimeError("wrapped")
    error.__cause__.__cause__ = ConnectionRefusedError("nobody there")
    assert failures.is_transient(error.__cause__.__cause__)
    assert not failures.is_transient(RuntimeError("wrapped"))
