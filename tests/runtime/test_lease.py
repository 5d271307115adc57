"""One writer: a second run is refused while the first lives, and waits for the JVM that a killed driver left behind."""

import os
import signal

import pytest

from tests.runtime.project import Project, copying
from tests.support import warm_python
from tests.support.warm_jvm import attached

pytestmark = pytest.mark.spark

PIPELINE = copying('sw.sinks.files("json", "out")')


def test_a_second_run_is_refused_and_a_killed_drivers_jvm_is_waited_for(project: Project) -> None:
    project.write(PIPELINE)
    project.add_files(40)
    first = project.start("run", "pipeline.py")
    first.wait_for(lambda: project.committed("rows") >= 1, "batches are committed")

    java, started = project.folder / "java" / "bin" / "java", project.folder / "started"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {started}\nexit 1\n")
    java.chmod(0o755)
    second = warm_python.run(("run", "pipeline.py"), project.folder, {"JAVA_HOME": str(java.parents[1])}, in_one=True)
    assert second.returncode == 5, second.stdout
    assert not started.exists(), "a refusal does not start Spark"
    assert "error lease-held: work/rows is held by pid " in second.stdout
    assert f"pid {first.pid} on " in second.stdout
    assert "since 20" in second.stdout
    assert project.runs("rows")[-1].end is None, "the first one is still active"

    # A frozen JVM outlives its driver for as long as the test wants.
    [jvm] = first.jvms
    os.kill(jvm, signal.SIGSTOP)
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()
    third = project.start("run", "pipeline.py", "--until-caught-up", environment=attached(project.folder))
    third.wait_for(lambda: f"its JVM (pid {jvm}) still runs" in third.log, "it reports what it waits for")
    assert project.runs("rows")[-1].end is None, "nothing starts before the JVM has exited"
    os.kill(jvm, signal.SIGCONT)

    assert third.end() == 0, third.log
    assert project.ids("out") == list(range(40)), third.log
    assert [run.end for run in project.runs("rows")] == ["killed", "finished"]
    assert first.gone_within(5), first.alive()
