"""A run that is killed at each point of a batch: the next one leaves each row once in the table."""

import json
import os
import signal
import time
from functools import partial

import psycopg
import pytest

from tests.runtime.project import Project, copying
from tests.support.postgres_server import PostgresServer

pytestmark = pytest.mark.spark
PIPELINE = copying('sw.sinks.postgres("{url}", "out", create=True, keep_batch_id=True)')
FUNCTION = """
import slackwater as sw
from sqlalchemy import text

pipeline = sw.Pipeline("work")


def save(df, batch):
    ids = [row.id for row in df.collect()]
    with batch.transaction() as connection:
        for number in ids:
            connection.execute(text("INSERT INTO out VALUES (:id, :batch)"), {{"id": number, "batch": int(batch)}})


@pipeline.stream(sink=sw.sinks.foreach_batch(save, writes_to="{url}"))
def rows(spark):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")
"""
LOCKS = {
    "before-staging": "LOCK TABLE slackwater_marker IN ACCESS EXCLUSIVE MODE",
    "after-staging": "SELECT * FROM slackwater_marker FOR UPDATE",
    "while-publishing": "LOCK TABLE out IN SHARE MODE",
}
"""What another session holds so that the sink waits at a known point: reading the marker, advancing it, inserting."""
OPERATION = "ID"


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(postgres.new_database())


def test_killed_at_each_point_of_a_batch(project: Project, url: str) -> None:
    project.write(PIPELINE.format(url=url))
    project.add_files(2)
    project.run("--until-caught-up")
    for point, lock in LOCKS.items():
        project.add_files(1)
        following = project.committed("rows") + 1
        command = project.start("run", "pipeline.py")
        # Its start reads and writes the marker, too: the lock is taken between two batches.
        command.wait_for(partial(_has_committed, project, following), f"batch {following}")
        with psycopg.connect(url) as connection:
            connection.execute(lock.encode())
            project.add_files(1)
            command.wait_for(partial(_waiting, url), point)
            staged = [name for name in _tables(url) if name.startswith("slackwater_stage_")]
            assert bool(staged) == (point != "before-staging"), point
            command.kill()
        assert project.planned("rows") == project.committed("rows") + 1, point
        project.run("--until-caught-up")
        _check(project, url, point)
    assert _tables(url) == ["out", "slackwater_marker"]


@pytest.mark.thorough
def test_killed_between_publishing_and_sparks_commit(project: Project, url: str) -> None:
    project.write(PIPELINE.format(url=url))
    project.add_files(1)
    project.run("--until-caught-up")
    _killed_after_its_batch_is_visible(project, url)


def test_a_rebuild_cuts_the_table_and_undo_brings_the_rows_back(project: Project, url: str) -> None:
    project.write(PIPELINE.format(url=url))
    project.add_files(4)
    project.run("--until-caught-up")
    for arguments, rows in (
        (("plan", "rebuild", "work/rows", "--at", "batch:1", "--out", "plan.json"), 4),
        (("apply", "plan.json", "--yes"), 2),
        (("undo", OPERATION, "--yes"), 4),
        (("plan", "rebuild", "work/rows", "--at", "batch:1", "--out", "plan.json", "--force"), 4),
        (("apply", "plan.json", "--yes"), 2),
        (("run", "pipeline.py", "--until-caught-up"), 4),
    ):
        plan = project.folder / "plan.json"
        operation = json.loads(plan.read_text())["id"] if plan.exists() else ""
        project.slackwater(*(operation if word == OPERATION else word for word in arguments))
        assert _ids(url) == list(range(rows)), arguments
    assert _newest(url) == 3
    assert len([name for name in _tables(url) if name.startswith("slackwater_cut_")]) == 1


@pytest.mark.thorough
def test_a_batch_function_killed_after_its_transaction(project: Project, url: str) -> None:
    project.write(FUNCTION.format(url=url))
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE out (id bigint, _slackwater_batch bigint)")
    project.add_files(1)
    project.run("--until-caught-up")
    _killed_after_its_batch_is_visible(project, url)


def _killed_after_its_batch_is_visible(project: Project, url: str) -> None:
    """Kill as soon as the marker shows a new batch, until Spark had not committed that batch at least once."""
    for attempt in range(6):
        project.add_files(1)
        before = _newest(url)
        command = project.start("run", "pipeline.py")
        command.wait_for(partial(_has_runs, project, attempt + 2), "the run")
        jvms = command.jvms
        command.wait_for(partial(_has_planned, project, before + 1), "the batch is planned")
        with psycopg.connect(url, autocommit=True) as connection:
            deadline = time.monotonic() + 60
            while _newest_of(connection) == before:
                assert command.process.poll() is None, command.log
                assert time.monotonic() < deadline, command.log
            for jvm in jvms:
                os.kill(jvm, signal.SIGKILL)
        command.kill()
        hit = project.committed("rows") < before + 1
        assert _newest(url) == before + 1
        if hit:
            break
    else:
        pytest.fail("Spark's commit was faster each time")
    project.run("--until-caught-up")
    _check(project, url, "after publishing")


def _has_committed(project: Project, batch: int) -> bool:
    return project.committed("rows") >= batch


def _has_planned(project: Project, batch: int) -> bool:
    return project.planned("rows") >= batch


def _has_runs(project: Project, count: int) -> bool:
    return len(project.runs("rows")) >= count


def _check(project: Project, url: str, when: str) -> None:
    assert _ids(url) == list(range(project.rows)), when
    assert project.committed("rows") == _newest(url), when


def _ids(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM out ORDER BY id")]


def _newest(url: str) -> int:
    with psycopg.connect(url) as connection:
        return _newest_of(connection)


def _newest_of(connection: psycopg.Connection[tuple[int, ...]]) -> int:
    row = connection.execute("SELECT batch_id FROM slackwater_marker").fetchone()
    return -1 if row is None else row[0]


def _waiting(url: str) -> bool:
    with psycopg.connect(url) as connection:
        query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return connection.execute(query).fetchone() is not None


def _tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        return [row[0] for row in connection.execute(query)]
