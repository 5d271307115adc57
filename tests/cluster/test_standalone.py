"""On a standalone cluster: a worker and the driver are killed in a batch, then it runs and is rebuilt elsewhere."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.runtime.project import Project
from tests.support.postgres_server import PostgresServer
from tests.support.processes import Command
from tests.support.standalone_cluster import JOB, SPARK_HOME, StandaloneCluster

pytestmark = pytest.mark.spark

PIPELINE = """
import slackwater as sw
from pyspark.sql import functions as F
from pages.names import name_of

import holding

pipeline = sw.Pipeline("work")


@pipeline.stream(sink=sw.sinks.files("json", "{folder}/out"))
def rows(spark):
    named = F.udf(name_of)
    held = F.udf(holding.wait)
    rows = spark.readStream.schema("id LONG, at TIMESTAMP").option("maxFilesPerTrigger", 8).json("{folder}/in")
    rows = rows.repartition(2).select("at", named("id").alias("page"), held(F.lit("{folder}/hold")).alias("module"))
    return (
        rows.withWatermark("at", "10 minutes").groupBy(F.window("at", "5 minutes"), "page", "module")
        .count().select(F.col("window.start").cast("long").alias("start"), "page", "module", "count")
    )
"""
NAMES = "def name_of(number):\n    return f'page {number % 3}'\n"
HOLDING = """
import time
from pathlib import Path


def wait(file):
    while Path(file).exists():
        Path(file).with_name("reached").touch()
        time.sleep(0.05)
    return Path(__file__).parent.name
"""
START = 1767225600
"""When the first row is: each is a minute after the one before."""
ARCHIVE = "slackwater-project.zip"
UNTIL = ("run", "pipeline.py", "--until-caught-up")


def _write(project: Project, folder: Path) -> None:
    """The pipeline with a module and a package next to it, on one machine."""
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "__init__.py").touch()
    (folder / "pages" / "names.py").write_text(NAMES)
    (folder / "holding.py").write_text(HOLDING)
    (folder / "pipeline.py").write_text(PIPELINE.format(folder=project.folder))
    (folder / "slackwater-job.py").write_text(JOB)


def _rows(project: Project, output: str = "out") -> Counter[tuple[object, ...]]:
    folder = project.folder / output
    counted: set[str] = set()
    for entry in (folder / "_spark_metadata").glob("[0-9]*"):
        counted |= {json.loads(line)["path"].rsplit("/", 1)[1] for line in entry.read_text().splitlines()[1:]}
    lines = [json.loads(line) for name in counted for line in (folder / name).read_text().splitlines()]
    return Counter(tuple(sorted(line.items())) for line in lines)


def _expected(files: int) -> Counter[tuple[object, ...]]:
    """The windows that are final when all files were read, and the watermark is that of the newest row."""
    counts = Counter((number // 5 * 5, f"page {number % 3}") for number in range(files))
    final = {key: count for key, count in counts.items() if key[0] + 5 <= files - 1 - 10}
    rows = (
        {"start": START + minute * 60, "page": page, "module": ARCHIVE, "count": n}
        for (minute, page), n in final.items()
    )
    return Counter(tuple(sorted(row.items())) for row in rows)


def test_killed_and_continued_on_another_machine(
    cluster: StandaloneCluster, postgres: PostgresServer, project: Project
) -> None:
    _kill_and_continue(cluster, postgres, project)


@pytest.mark.thorough
def test_rebuilt_on_another_machine(cluster: StandaloneCluster, postgres: PostgresServer, project: Project) -> None:
    shared = _kill_and_continue(cluster, postgres, project)
    other = project.folder / "other"
    shutil.rmtree(project.folder / "home" / "streams" / "work" / "rows" / "checkpoints" / "0001")
    plan = str(other / "plan.json")
    for arguments in (["plan", "rebuild", "work/rows", "--out", plan], ["apply", plan, "--yes"]):
        command = _start(project, other, [*arguments, *cluster.arguments], shared)
        assert command.end(400) == 0, command.log
    project.add_files(8)
    command = _start(project, other, [*UNTIL, *cluster.arguments], shared)
    assert command.end(400) == 0, command.log
    assert _rows(project) == _expected(48)


def _kill_and_continue(cluster: StandaloneCluster, postgres: PostgresServer, project: Project) -> dict[str, str]:
    """A worker and the driver are killed, each in a batch; a driver on another machine continues: its environment."""
    url = postgres.url(postgres.new_database())
    shared = {"SLACKWATER_HOME": str(project.folder / "home"), "SLACKWATER_LEDGER": url}
    one, other = project.folder / "one", project.folder / "other"
    _write(project, one)
    project.add_files(24)
    hold, reached = project.folder / "hold", project.folder / "reached"
    hold.touch()

    driver = _start(project, one, [*UNTIL, *cluster.arguments], shared)
    driver.wait_for(reached.exists, "the first batch")
    cluster.workers[-1].kill()
    hold.unlink()
    driver.wait_for((project.folder / "out" / "_spark_metadata" / "0").exists, "a batch after a worker was lost")
    hold.touch()
    reached.unlink()
    driver.wait_for(reached.exists, "another batch")
    driver.kill()
    hold.unlink()
    project.add_files(16)
    cluster.add_worker()

    _write(project, other)
    job = ["--master", cluster.address, *cluster.arguments[2:], str(other / "slackwater-job.py"), *UNTIL]
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), *job]
    done = subprocess.run(
        submit, cwd=other, capture_output=True, text=True, check=False, timeout=500, env=_environment(shared)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert _rows(project) == _expected(40)
    return shared


def _start(project: Project, folder: Path, arguments: list[str], environment: dict[str, str]) -> Command:
    command = Command(arguments, folder, environment=_environment(environment))
    project.commands.append(command)
    return command


def _environment(more: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, **more}
