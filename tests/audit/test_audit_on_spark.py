"""``slackwater audit`` on batch functions: three that are wrong are caught, one that is right passes."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Command

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
PIPELINE = """
import sqlite3
from contextlib import closing
from pathlib import Path

import slackwater as sw
from sqlalchemy import text

pipeline = sw.Pipeline("shop")
NEWEST = Path("newest.txt")


def orders(spark):
    return spark.readStream.schema("id LONG, item STRING, price DECIMAL(10,2), at TIMESTAMP").json("landing")


def append(df, batch_id):
    df.write.mode("append").parquet("appended")


def insert(df, batch_id):
    rows = [(row.id, row.item) for row in df.collect()]
    with closing(sqlite3.connect("inserted.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, item TEXT)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", rows)


def skip(df, batch_id):
    if (not NEWEST.exists() or batch_id > int(NEWEST.read_text())) and NEWEST.write_text(str(batch_id)):
        df.write.mode("append").parquet("skipped")


def save(df, batch):
    rows = [{"id": row.id, "item": row.item} for row in df.collect()]
    with batch.transaction() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS orders (id INTEGER, item TEXT)"))
        connection.execute(text("INSERT INTO orders VALUES (:id, :item)"), rows)


def skip_rows(df, batch_id):
    with Path("batches.txt").open("a") as file:
        file.write(f"{batch_id}\\n")


def count_first(df, batch_id):
    if batch_id == 0:
        df.count()
    save_once(df, batch_id)


def save_once(df, batch_id):
    df.write.mode("overwrite").parquet(f"once/{batch_id}")


class Lines:
    def process(self, row):
        with Path("lines.txt").open("a") as file:
            file.write(f"{row.id}\\n")


for name, sink in {
    "appended": sw.sinks.foreach_batch(append),
    "inserted": sw.sinks.foreach_batch(insert),
    "skipped": sw.sinks.foreach_batch(skip),
    "ignored": sw.sinks.foreach_batch(skip_rows),
    "counted": sw.sinks.foreach_batch(count_first),
    "saved": sw.sinks.foreach_batch(save, writes_to="sqlite:///saved.db"),
    "lines": sw.sinks.foreach(Lines()),
}.items():
    pipeline.stream(sink=sink, name=name)(orders)


def parquet(spark, name):
    return spark.read.parquet(name) if Path(name).exists() else []


def table(file):
    if not Path(file).exists():
        return []
    with closing(sqlite3.connect(file)) as connection:
        known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'orders'").fetchone()
        return connection.execute("SELECT id, item FROM orders").fetchall() if known else []


@pipeline.audit_reader("appended")
def appended(spark):
    return parquet(spark, "appended")


@pipeline.audit_reader("skipped")
def skipped(spark):
    return parquet(spark, "skipped")


@pipeline.audit_reader("counted")
def counted(spark):
    return spark.read.parquet("once/*") if Path("once").exists() else []


@pipeline.audit_reader("ignored")
def ignored(spark):
    return Path("batches.txt").read_text().splitlines() if Path("batches.txt").exists() else []


@pipeline.audit_reader("inserted")
def inserted(spark):
    return table("inserted.db")


@pipeline.audit_reader("saved")
def saved(spark):
    return table("saved.db")


@pipeline.audit_reader("lines")
def lines(spark):
    return Path("lines.txt").read_text().splitlines() if Path("lines.txt").exists() else []
"""
ROWS = 20
"""Of each batch."""


class Scene:
    """A folder with the pipeline file and the input folder that it names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[Command] = []
        (folder / "landing").mkdir()
        (folder / "pipeline.py").write_text(PIPELINE)

    def start(self, stream: str, *arguments: str) -> Command:
        words = ("audit", "pipeline.py", "--stream", stream, "--folder", "audit", "--format", "json", *arguments)
        command = Command(words, self.folder)
        self.commands.append(command)
        return command

    def audit(self, stream: str, *arguments: str, code: int = 0) -> dict[str, Any]:
        command = self.start(stream, "--yes", *arguments)
        assert command.end(600) == code, command.log
        document: dict[str, Any] = json.JSONDecoder().raw_decode(command.log[command.log.index("{\n") :])[0]
        return document

    def drills(self, stream: str, *arguments: str, code: int = 0) -> dict[str, dict[str, Any]]:
        """The results by the name of the drill; of several with one name the worst."""
        (audited,) = self.audit(stream, *arguments, code=code)["streams"]
        return {drill["drill"]: drill for drill in sorted(audited["drills"], key=lambda one: not one["passed"])}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    for command in scene.commands:
        command.kill()


@pytest.mark.thorough
def test_a_plain_append_doubles_a_batch_whose_commit_is_missing(scene: Scene) -> None:
    found = scene.drills("appended", "--drill", "after", code=8)
    assert (found["after"]["doubled"], found["after"]["vanished"], found["after"]["other"]) == (ROWS, 0, 0)
    assert found["none"]["passed"]


@pytest.mark.thorough
def test_an_insert_without_a_marker_doubles_a_batch_that_is_written_twice(scene: Scene) -> None:
    found = scene.drills("inserted", "--drill", "twice", code=8)
    assert (found["twice"]["doubled"], found["twice"]["vanished"]) == (ROWS, 0)


def test_a_marker_that_is_written_before_the_rows_loses_them(scene: Scene) -> None:
    found = scene.drills("skipped", "--drill", "line", code=8)
    assert (found["line"]["doubled"], found["line"]["vanished"]) == (0, ROWS)
    assert found["line"]["text"].startswith("killed before pipeline.py:")
    assert found["none"]["passed"]


@pytest.mark.thorough
def test_a_drill_that_never_took_place_is_not_passed(scene: Scene) -> None:
    document = scene.audit("ignored", "--drill", "job", code=5)
    (job,) = [drill for drill in document["streams"][0]["drills"] if drill["drill"] == "job"]
    assert (document["passed"], job["passed"], job["reached"], job["failed"]) == (False, False, False, None)


@pytest.mark.thorough
def test_a_function_that_reads_the_rows_once_more_in_its_first_batch_is_drilled(scene: Scene) -> None:
    found = scene.drills("counted", "--drill", "job")
    assert (found["job"]["reached"], found["job"]["passed"]) == (True, True)


@pytest.mark.thorough
def test_a_transaction_with_the_marker_passes(scene: Scene) -> None:
    drills = ("task", "after")
    document = scene.audit("saved", *(word for drill in drills for word in ("--drill", drill)))
    (audited,) = document["streams"]
    names = [drill["drill"] for drill in audited["drills"]]
    assert names == ["none", *drills, "none"]
    assert [drill for drill in audited["drills"] if not drill["passed"] or not drill["reached"]] == []
    assert (document["passed"], audited["guarantee"]) == (True, "exactly-once")
    assert audited["rows"] == ROWS * len(names)


@pytest.mark.thorough
def test_rows_of_a_failed_task_are_given_to_a_function_of_rows_again(scene: Scene) -> None:
    found = scene.drills("lines", "--drill", "task", code=8)
    assert (found["task"]["doubled"], found["task"]["vanished"]) == (ROWS // 2, 0)


@pytest.mark.thorough
def test_a_target_that_holds_rows_is_refused_and_left_alone(scene: Scene) -> None:
    target = scene.folder / "orders.txt"
    target.write_text("7\n")
    text = PIPELINE.replace('Path("lines.txt")', f'Path("{target}")')
    (scene.folder / "pipeline.py").write_text(text)
    command = scene.start("lines", "--yes", "--drill", "task")
    assert command.end(300) == 5, command.log
    assert '"code": "audit-target"' in command.log
    assert target.read_text() == "7\n"


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["ctrl-c", "closed-terminal"])
def test_interrupted_it_says_what_is_left_and_nothing_keeps_running(scene: Scene, number: signal.Signals) -> None:
    command = scene.start("appended", "--yes")
    command.wait_for((scene.folder / "audit/appended/reference/results.jsonl").exists, "the first batch")
    command.process.send_signal(number)
    assert command.end(60) == 130, command.log
    assert command.alive() == []
    assert "The targets hold the rows that were written so far." in command.log
    assert str(scene.folder / "audit") in command.log
