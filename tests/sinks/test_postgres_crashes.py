"""The database server crashes while a batch is written: the batch is written again, and each row is there once."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.runtime.project import Project
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.warm_jvm import attached

pytestmark = pytest.mark.spark
PIPELINE = """
import time
from pathlib import Path

import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")


@pipeline.stream(sink=sw.sinks.postgres("{url}", "out", create=True{options}))
def rows(spark):
    @F.udf("long")
    def waiting(number, part):
        while part == 1 and not Path("{folder}/go").exists():
            time.sleep(0.05)
        return number

    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 8).json("in")
    return rows.repartitionByRange(2, "id").select(waiting("id", F.spark_partition_id()).alias("id"))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that may crash: no other test uses it."""
    with postgres_server() as server:
        yield server


@pytest.mark.parametrize(
    ("durable", "options"),
    [
        ("on", ""),
        pytest.param("off", "", marks=pytest.mark.thorough),
        pytest.param("on", ', keys="id"', marks=pytest.mark.thorough),
    ],
    ids=["emptied", "missing", "upsert"],
)
def test_a_crash_after_one_task_has_staged_its_rows(
    project: Project, server: PostgresServer, durable: str, options: str
) -> None:
    """The staged table is emptied by the server's recovery, or does not exist where its commit was not on disk yet."""
    name = server.new_database()
    url = server.url(name)
    server.execute(f"ALTER DATABASE {name} SET synchronous_commit = {durable}")
    project.write(PIPELINE.format(url=url, options=options, folder=project.folder))
    project.add_files(24)
    command = project.start("run", "pipeline.py", "--until-caught-up", environment=attached(project.folder))
    command.wait_for(lambda: _staged(url) > 0, "a staged table")
    server.crash()
    (project.folder / "go").touch()
    assert command.end() == 0, command.log
    with psycopg.connect(url) as connection:
        assert [row[0] for row in connection.execute("SELECT id FROM out ORDER BY 1")] == list(range(24))
    assert "sink-staged-lost" in command.log


def _staged(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT tablename FROM pg_tables WHERE starts_with(tablename::text, 'slackwater_st')"
        )
        counts = [connection.execute(f"SELECT count(*) FROM {name}".encode()).fetchone() for (name,) in found]
    return sum(count[0] for count in counts if count is not None)
