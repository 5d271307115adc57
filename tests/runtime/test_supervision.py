"""A run as a service: what systemd is told, ``/live`` and ``/ready``, and a refused start that is held."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.runtime.project import Project
from tests.support.processes import WAIT_S, Command
from tests.support.standalone_cluster import JOB, SPARK_HOME

pytestmark = pytest.mark.spark

PIPELINE = """
import pathlib, time
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")

def _wait(identity):
    while identity == 1 and not pathlib.Path(ROOT, "free").exists():
        time.sleep(0.02)
    return identity

@pipeline.stream(sink=sw.sinks.files("json", SINK), trigger="100 milliseconds")
def rows(spark):
    return spark.readStream.schema("id LONG").json("in").select(F.udf(_wait, "long")("id").alias("id"))
"""
IDLE_OFTEN = ("--conf", "spark.sql.streaming.noDataProgressEventInterval=200")
PROMPT_S = 2.0
"""Ten times the interval of idle reports."""


def _write(project: Project, sink: str) -> None:
    project.write(f"ROOT, SINK = {str(project.folder)!r}, {sink!r}\n{PIPELINE}")


def _get(command: Command, path: str) -> tuple[int, str]:
    command.wait_for(lambda: "metrics at " in command.log, "the address is printed")
    found = re.search(r"metrics at http://(127\.0\.0\.1:\d+)/", command.log)
    assert found is not None, command.log
    connection = HTTPConnection(found[1], timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read().decode()


def _notices(service_manager: socket.socket, seconds: float = 0.0) -> list[str]:
    """The lines of all datagrams that are there, or come within this time."""
    found, until = [], time.monotonic() + seconds
    while True:
        service_manager.settimeout(max(until - time.monotonic(), 0.001))
        try:
            found += service_manager.recv(4096).decode().splitlines()
        except TimeoutError:
            return found


def test_systemd_hears_of_the_start_and_of_each_batch_or_idle_trigger_but_not_of_a_batch_that_hangs(
    project: Project, tmp_path: Path
) -> None:
    _write(project, "out")
    project.add_files(1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service_manager:
        service_manager.bind(str(tmp_path / "notify"))
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        command = project.start("run", "pipeline.py", "--metrics-port", "0", *IDLE_OFTEN, environment=environment)
        assert _get(command, "/live")[0] == 200
        assert _get(command, "/ready")[0] == 503, "no stream runs yet"

        command.wait_for(lambda: project.committed("rows") == 0, "the first batch")
        assert _get(command, "/ready") == (200, "work/rows running\n")
        first = _notices(service_manager, PROMPT_S)
        assert first[:3] == ["STATUS=work/rows running", "WATCHDOG=1", "READY=1"]
        assert "WATCHDOG=1" in first[3:], "the stream is idle"

        project.add_files(1)
        command.wait_for(lambda: project.planned("rows") == 1, "the batch that hangs")
        time.sleep(PROMPT_S)
        _notices(service_manager)
        assert _notices(service_manager, PROMPT_S) == []
        (project.folder / "free").touch()
        command.wait_for(lambda: project.committed("rows") == 1, "it is committed")
        assert "WATCHDOG=1" in _notices(service_manager, PROMPT_S)

        command.process.terminate()
        assert command.end() == 0, command.log
        assert "STATUS=work/rows stopped" in _notices(service_manager)
    assert project.ids("out") == [0, 1]


def test_a_refused_start_is_held_not_ready_and_says_why(project: Project) -> None:
    _write(project, "out")
    project.add_files(1)
    project.run("--until-caught-up")
    _write(project, "elsewhere")
    reason = project.folder / "reason"
    reason.write_text("the reason of an earlier start")

    command = project.start("run", "pipeline.py", "--metrics-port", "0", "--hold", str(reason))
    command.wait_for(lambda: "held: " in command.log, "it is held")

    code, page = _get(command, "/ready")
    assert (code, page) == (503, reason.read_text())
    assert page.startswith("sink-changed: ")
    assert "give the changed stream a new name" in page.partition("\nhint: ")[2]
    assert _get(command, "/live")[0] == 200
    [stream] = json.loads(project.slackwater("status", "--format", "json", expected=7).log)["streams"]
    assert "sink-changed" in json.dumps(stream)

    command.process.send_signal(signal.SIGTERM)
    assert command.end() == 5, command.log
    assert command.log.count("error sink-changed: ") == 1


def test_what_a_restart_can_help_is_not_held(project: Project) -> None:
    _write(project, "out")
    project.add_files(1)
    missing = project.folder / "missing" / "reason"
    assert "file-inaccessible" in project.run("--hold", str(missing), expected=9).log
    held = project.start("run", "pipeline.py")
    held.wait_for(lambda: project.committed("rows") == 0, "it runs")

    log = project.run("--hold", str(project.folder / "reason"), expected=5).log

    assert "lease-held" in log
    assert (project.folder / "reason").read_text() == ""
    held.process.terminate()
    assert held.end() == 0


def test_under_spark_submit_a_stop_before_sigterm_lets_the_batch_end(project: Project) -> None:
    _write(project, "out")
    project.write(JOB, "slackwater-job.py")
    project.add_files(2)
    with (project.folder / "log").open("wb") as log:
        driver = subprocess.Popen(
            [SPARK_HOME / "bin" / "spark-submit", "--master", "local[2]", "slackwater-job.py", "run", "pipeline.py"],
            cwd=project.folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
    try:
        deadline = time.monotonic() + WAIT_S
        while project.planned("rows") < 0:
            assert driver.poll() is None, (project.folder / "log").read_text()
            assert time.monotonic() < deadline, (project.folder / "log").read_text()
            time.sleep(0.1)
        # The batch hangs until the stop has been asked for.
        stop = project.start("stop", "rows", "--wait", "60s")
        stop.wait_for(lambda: project.runs("rows")[-1].stop_requested_ms is not None, "the stop is asked for")
        (project.folder / "free").touch()
        assert stop.end() == 0, stop.log
        assert driver.wait(WAIT_S) == 0, (project.folder / "log").read_text()
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert project.ids("out") == [0, 1]
    assert project.committed("rows") == project.planned("rows")
