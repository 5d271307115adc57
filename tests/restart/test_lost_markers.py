"""The marker table of PostgreSQL outputs is dropped: what is printed, typed as it is, leaves each row once in them."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.runtime.project import Project
from tests.support.postgres_server import PostgresServer

pytestmark = pytest.mark.spark
PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("work")


def ids(spark):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")


@pipeline.stream(sink=sw.sinks.postgres("{url}", "plain", create=True))
def plain(spark):
    return ids(spark)


@pipeline.stream(sink=sw.sinks.postgres("{url}", "numbered", create=True, keep_batch_id=True))
def numbered(spark):
    return ids(spark)
"""
LOST = {
    "table": "DROP TABLE slackwater_marker",
    "rows": "DELETE FROM slackwater_marker",
    "older": "UPDATE slackwater_marker SET batch_id = 1",
}
STREAMS = ("plain", "numbered")
BATCHES = 4
REFUSED = 5


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(postgres.new_database())


@pytest.fixture
def project(tmp_path: Path, url: str) -> Iterator[Project]:
    project = Project(tmp_path)
    project.write(PIPELINE.format(url=url))
    yield project
    for command in project.commands:
        command.kill()


@pytest.mark.parametrize(
    "how", ["table", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("rows", "older"))]
)
def test_what_is_printed_leaves_each_row_once(project: Project, url: str, how: str) -> None:
    project.add_files(BATCHES)
    project.run("--until-caught-up")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(LOST[how].encode())

    following = ""
    for name in STREAMS:
        reset = _after(_typed(project, f"slackwater status work/{name}", REFUSED), "next")
        to_file = _after(_typed(project, reset), "next:")
        apply = _after(_typed(project, to_file), "next:")
        allowed = _after(_typed(project, f"{apply} --yes", REFUSED), "if they may go:")
        following = _after(_typed(project, allowed), "next:")
    project.add_files(2)
    _typed(project, f"{following} --until-caught-up")

    assert {name: _ids(url, name) for name in STREAMS} == {name: list(range(BATCHES + 2)) for name in STREAMS}
    _typed(project, "slackwater status")


def _typed(project: Project, line: str, expected: int = 0) -> str:
    return project.slackwater(*shlex.split(line)[1:], expected=expected).log


def _after(printed: str, label: str) -> str:
    return next(one.partition(label)[2].strip() for one in printed.splitlines() if f"{label} " in one)


def _ids(url: str, table: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute(f"SELECT id FROM {table} ORDER BY id".encode()).fetchall()]
