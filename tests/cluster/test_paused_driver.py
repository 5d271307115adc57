"""A driver is paused in a batch (``kill -STOP``); another takes over its lease; the first resumes (``kill -CONT``)."""

import hashlib
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import psycopg
import pyarrow.parquet
import pytest
from pyiceberg.table import StaticTable

from examples.demo.broker import Broker
from tests.runtime.project import Project
from tests.sinks import delta_logs
from tests.support.kafka_topics import create_topic, values
from tests.support.postgres_server import PostgresServer
from tests.support.processes import Command

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


KAFKA, TOPIC = "kafka", "rows"

PIPELINE = """
import os
import time
from pathlib import Path

import sqlalchemy
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")
url = "{url}"
servers = "{servers}"
engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool) if url else None


def insert(frame, batch):
    rows = [{{"id": row.id}} for row in frame.collect()]
    with batch.transaction() as connection:
        if rows:
            connection.execute(sqlalchemy.text("INSERT INTO out VALUES (:id)"), rows)


@pipeline.stream(sink={sink})
def rows(spark):
    @F.udf("long")
    def held(number):
        hold = Path("{folder}") / os.environ["DRIVER"]
        while number >= 4 and hold.exists():
            hold.with_suffix(".reached").touch()
            time.sleep(0.05)
        return number

    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 4).json("in")
    return rows.repartition(1).select(held("id"){column})
"""


@dataclass(frozen=True)
class Kind:
    """A sink as a pipeline names it, the ids that its output shows, and what a driver reports that loses a race.

    Without a fence number in what is written, the driver that was paused can write the batch first.
    """

    sink: str
    ids: Callable[[Project, str], list[int]]
    in_database: bool = False
    race: str | None = None
    column: str = '.alias("id")'


def _in_files(project: Project, _url: str) -> list[int]:
    return project.ids("out")


def _in_delta(project: Project, _url: str) -> list[int]:
    out = project.folder / "out"
    tables = [pyarrow.parquet.ParquetFile(out / name).read() for name in delta_logs.live_files(out)]
    return sorted(row["id"] for table in tables for row in table.to_pylist())


def _in_iceberg(project: Project, _url: str) -> list[int]:
    # Sorted; a row that was written twice is there twice.
    metadata = (project.folder / "out") / "metadata"
    version = (metadata / "version-hint.text").read_text().strip()
    table = StaticTable.from_metadata(f"file://{metadata}/v{version}.metadata.json")
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def _in_table(_project: Project, url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM out ORDER BY id").fetchall()]


def _in_topic(_project: Project, servers: str) -> list[int]:
    return sorted(int(value or b"-1") for value in values(servers, TOPIC))


KINDS = {
    "files": Kind('sw.sinks.files("json", "out")', _in_files, race="Race while writing batch 1"),
    "postgres": Kind('sw.sinks.postgres(url.replace("+psycopg", ""), "out")', _in_table, in_database=True),
    "jdbc": Kind('sw.sinks.jdbc(url, "out")', _in_table, in_database=True),
    "foreach_batch": Kind("sw.sinks.foreach_batch(insert, writes_to=url)", _in_table, in_database=True),
    "delta": Kind('sw.sinks.delta("out")', _in_delta, race="DELTA_CONCURRENT_TRANSACTION"),
    "iceberg": Kind('sw.sinks.iceberg("./out")', _in_iceberg),
    KAFKA: Kind(
        f'sw.sinks.kafka("{TOPIC}", bootstrap_servers=servers, exactly_once=True)',
        _in_topic,
        column='.cast("string").alias("value")',
    ),
}
CASES = [
    # ``before``: it resumes before the other has written the batch that both were at; ``after``: after that.
    pytest.param(kind, when, marks=[pytest.mark.kafka] if kind == KAFKA else [])
    for kind in KINDS
    for when in ("before", "after")
]


@pytest.mark.parametrize(("name", "when"), CASES)
def test_a_paused_driver_writes_nothing_more(
    name: str, when: Literal["before", "after"], project: Project, request: pytest.FixtureRequest
) -> None:
    kind, url, servers = KINDS[name], "", ""
    if kind.in_database:
        postgres: PostgresServer = request.getfixturevalue("postgres")
        url = postgres.url(postgres.new_database())
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE out (id BIGINT)")
    if name == KAFKA:
        servers = request.getfixturevalue("servers")
    text_url = url.replace("postgresql://", "postgresql+psycopg://")
    text = PIPELINE.format(sink=kind.sink, url=text_url, servers=servers, column=kind.column, folder=project.folder)
    project.write(text)
    project.add_files(8)
    paused = _start(project, "paused")
    paused.wait_for((project.folder / "paused.reached").exists, "the second batch")
    _signal(paused, signal.SIGSTOP)
    _seem_of_another_machine(project)
    (project.folder / "paused").unlink()

    other = _start(project, "other", "--until-caught-up")
    other.wait_for((project.folder / "other.reached").exists, "the same batch of the other driver")
    if when == "before":
        _signal(paused, signal.SIGCONT)
        assert paused.end() != 0, paused.log
        (project.folder / "other").unlink()
        # Started once more, it finds the batch written.
        assert other.end() == 0 or (kind.race is not None and kind.race in other.log), other.log
    else:
        (project.folder / "other").unlink()
        assert other.end() == 0, other.log
        before = _checkpoint(project)
        _signal(paused, signal.SIGCONT)
        assert paused.end() != 0, paused.log
        assert _checkpoint(project) == before
    assert "lease" in paused.log
    assert kind.ids(project, url or servers) == list(range(8))

    project.add_files(4)
    third = _start(project, "third", "--until-caught-up", hold=False)
    assert third.end() == 0, third.log
    assert kind.ids(project, url or servers) == list(range(12))


@pytest.fixture
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The servers of a broker that has an empty topic."""
    with Broker.start(tmp_path_factory.mktemp("broker")) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        yield broker.bootstrap_servers


def _start(project: Project, driver: str, *arguments: str, hold: bool = True) -> Command:
    if hold:
        (project.folder / driver).touch()
    return project.start("run", "pipeline.py", *arguments, environment={"DRIVER": driver})


def _signal(command: Command, number: signal.Signals) -> None:
    """Pause or resume the driver with its JVM and its Python workers, as when their machine is paused."""
    for pid in (*command.alive(), command.pid):
        os.kill(pid, number)


def _seem_of_another_machine(project: Project) -> None:
    """Its lease is one whose holder cannot be looked up from here, and which has not been renewed for long."""
    with sqlite3.connect(project.folder / ".slackwater" / "ledger.db", timeout=30) as ledger:
        changed = ledger.execute("UPDATE leases SET host = 'another.example', heartbeat_ms = 1 WHERE host IS NOT NULL")
        assert changed.rowcount == 1


def _checkpoint(project: Project) -> dict[str, str]:
    """Every file of the checkpoint with the hash of its content."""
    folder = project.checkpoint("rows")
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
