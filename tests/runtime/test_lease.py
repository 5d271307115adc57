"""One writer: a second run is refused while the first lives, and waits for the JVM that a killed driver left behind."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.runtime.project import Project

pytestmark = pytest.mark.spark

PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("work")

@pipeline.stream(sink=sw.sinks.files("json", "out"))
def rows(spark):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")
"""


def test_a_second_run_is_refused_and_a_killed_drivers_jvm_is_waited_for(project: Project) -> None:
    project.write(PIPELINE)
    project.add_files(40)
    first = project.start("run", "pipeline.py")
    first.wait_for(lambda: project.committed("rows") >= 1, "batches are committed")

    started = time.monotonic()
    second = project.run(expected=5)
    assert time.monotonic() - started < 5, "a refusal does not start Spark"
    assert "error lease-held: work/rows is held by pid " in second.log
    assert f"pid {first.pid} on " in second.log
    assert "since 20" in second.log
    assert project.runs("rows")[-1].end is None, "the first one is still active"

    # A frozen JVM outlives its driver for as long as the test wants.
    [jvm] = first.jvms
    os.kill(jvm, signal.SIGSTOP)
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()
    third = project.start("run", "pipeline.py", "--until-caught-up")
    third.wait_for(lambda: f"its JVM (pid {jvm}) still runs" in third.log, "it reports what it waits for")
    assert project.runs("rows")[-1].end is None, "nothing starts before the JVM has exited"
    os.kill(jvm, signal.SIGCONT)

    assert third.end() == 0, third.log
    assert project.ids("out") == list(range(40)), third.log
    assert [run.end for run in project.runs("rows")] == ["killed", "finished"]
    assert first.gone_within(5), first.alive()
