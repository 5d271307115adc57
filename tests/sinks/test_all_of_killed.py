"""A batch into PostgreSQL and Delta, killed before, between and after the two commits: each row is once in both."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet
import pytest

from tests.runtime.project import Project, copying
from tests.sinks import delta_logs
from tests.support.killing import kill_with_children
from tests.support.postgres_server import PostgresServer

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
PIPELINE = copying(
    'sw.sinks.all_of(sw.sinks.postgres("{url}", "out", create=True, keep_batch_id=True), sw.sinks.delta("table"))'
)
ATTEMPTS = 6
WAIT_S = 120.0
BEFORE_STAGING = "LOCK TABLE slackwater_marker IN ACCESS EXCLUSIVE MODE"
"""Held by another session: whoever writes a batch to PostgreSQL reads the marker first."""
Marks = tuple[int, int, int, int]
"""Planned, committed, written to PostgreSQL, written to Delta."""


class Scene:
    """The project with its two outputs, read without the code under test."""

    def __init__(self, project: Project, url: str) -> None:
        self.project = project
        self.url = url
        self.files = 0
        project.write(PIPELINE.format(url=url))

    def add_files(self, count: int) -> None:
        self.project.add_files(count)
        self.files += count

    def caught_up(self) -> None:
        self.project.run("--until-caught-up")

    def in_postgres(self) -> Counter[int]:
        """The ids in the table, each as often as it is there."""
        with psycopg.connect(self.url) as connection:
            return Counter(row[0] for row in connection.execute("SELECT id FROM out"))

    def in_delta(self) -> Counter[int]:
        table = self.project.folder / "table"
        found: Counter[int] = Counter()
        for name in delta_logs.live_files(table):
            found.update(pyarrow.parquet.ParquetFile(table / name).read().column("id").to_pylist())
        return found

    def marks(self) -> Marks:
        with psycopg.connect(self.url) as connection:
            row = connection.execute("SELECT batch_id FROM slackwater_marker").fetchone()
        return self.project.planned("rows"), self.project.committed("rows"), row[0] if row else -1, self.delta_mark()

    def kill_in_a_batch(self, reached: Callable[[int], bool], holds: Callable[[Marks], bool], lock: str = "") -> None:
        """Run, and kill in a batch when it has ``reached``; again until the kill was quick enough for ``holds``.

        The lock of another session is taken before the batch: the run's start uses the marker, too.
        """
        for _ in range(ATTEMPTS):
            self.add_files(1)
            following = self.project.committed("rows") + 1
            command = self.project.start("run", "pipeline.py")
            command.wait_for(partial(self.has_committed, following), "a batch")
            jvms = command.jvms
            with psycopg.connect(self.url) as connection:
                if lock:
                    connection.execute(lock.encode())
                self.add_files(1)
                deadline = time.monotonic() + WAIT_S
                while not reached(following + 1):
                    assert command.process.poll() is None, command.log
                    assert time.monotonic() < deadline, command.log
                kill_with_children(command.process, jvms)
            if holds(self.marks()):
                return
            self.caught_up()
        pytest.fail(f"the kill was never quick enough: {self.marks()}")

    def has_committed(self, batch: int) -> bool:
        return self.project.committed("rows") >= batch

    def delta_mark(self) -> int:
        return max(delta_logs.transactions(self.project.folder / "table").values(), default=-1)

    def waits(self) -> bool:
        """Whether a session waits for a lock of another one."""
        with psycopg.connect(self.url) as connection:
            query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            return connection.execute(query).fetchone() is not None

    def command(self, *arguments: str) -> str:
        return self.project.slackwater(*arguments).log

    def rebuild(self, at: str) -> str:
        self.command("plan", "rebuild", "work/rows", "--at", at, "--out", "plan.json", "--force")
        self.command("apply", "plan.json", "--yes")
        return str(json.loads((self.project.folder / "plan.json").read_text())["id"])

    def status(self) -> Any:
        return json.loads(self.command("status", "work/rows", "--format", "json"))["streams"][0]

    def check(self, when: str, batches: int | None = None) -> None:
        """Both outputs have the rows of the first batches, by default of all, each once."""
        expected = Counter(range(self.files if batches is None else batches))
        assert (self.in_postgres(), self.in_delta()) == (expected, expected), when


@pytest.fixture
def scene(tmp_path: Path, postgres: PostgresServer) -> Iterator[Scene]:
    project = Project(tmp_path)
    yield Scene(project, postgres.url(postgres.new_database()))
    for command in project.commands:
        command.kill()


@pytest.mark.thorough
def test_killed_at_each_point_cut_and_undone(scene: Scene) -> None:
    scene.kill_in_a_batch(lambda _: scene.waits(), lambda m: m[1] == m[2] == m[3] == m[0] - 1, BEFORE_STAGING)
    assert scene.status()["verdict"]["code"] == "clean"
    scene.caught_up()
    scene.check("killed before both")

    scene.kill_in_a_batch(lambda batch: scene.marks()[2] >= batch, lambda m: m[0] == m[2] == m[1] + 1 == m[3] + 1)
    status = scene.status()
    assert status["verdict"]["code"] == "written-in-part"
    assert [one["written"] for one in status["outputs"]] == [scene.marks()[2], scene.marks()[3]]
    assert status["marks"]["written"] == scene.marks()[3]
    scene.caught_up()
    scene.check("killed between the two")

    scene.kill_in_a_batch(lambda batch: scene.delta_mark() >= batch, lambda m: m[0] == m[2] == m[3] == m[1] + 1)
    assert scene.status()["verdict"]["code"] == "commit-missing"
    scene.caught_up()
    scene.check("killed after both")

    operation = scene.rebuild("batch:1")
    scene.check("cut", batches=2)
    scene.command("undo", operation, "--yes")
    scene.check("undone")
    scene.rebuild("batch:1")
    scene.caught_up()
    scene.check("cut and run again")
    assert scene.marks()[1] == scene.marks()[2] == scene.marks()[3]
