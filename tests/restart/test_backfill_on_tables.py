"""Backfills of Kafka and files into PostgreSQL, Delta and Iceberg, killed, continued and undone: each row once."""

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pyarrow.parquet
import pytest
from confluent_kafka import Producer

from examples.demo.broker import Broker
from tests.restart.scenario import CONF
from tests.restart.small import SmallWorkspace
from tests.sinks import delta_logs, iceberg_tables
from tests.support.kafka_topics import create_topic
from tests.support.killing import kill_at_call
from tests.support.postgres_server import PostgresServer

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600)]
TOPIC = "numbers"
PARTITIONS = 3
PASSED_OVER = (4, 2, 1)
"""The offsets at which the stream into PostgreSQL starts."""
LANDED_S = 1_700_000_000
PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("web")


def numbers(spark, starting):
    options = {"kafka.bootstrap.servers": "SERVERS", "subscribe": "TOPIC", "maxOffsetsPerTrigger": "12"}
    rows = spark.readStream.format("kafka").options(**options, startingOffsets=starting).load()
    return rows.selectExpr("CAST(CAST(value AS STRING) AS LONG) AS n")


@pipeline.stream(sink=sw.sinks.postgres("URL", "numbers", create=True, keep_batch_id=True))
def postgres(spark):
    return numbers(spark, '{"TOPIC": OFFSETS}')


@pipeline.stream(sink=sw.sinks.delta("delta"))
def delta(spark):
    return numbers(spark, "latest")


@pipeline.stream(sink=sw.sinks.iceberg("./iceberg"))
def iceberg(spark):
    return spark.readStream.schema("n LONG").option("maxFilesPerTrigger", 1).json("landing")
"""
Numbers = Counter[int]
PLANNED, PUBLISHED = "call", "return"
"""The kill is before the sink has the batch, or when the sink has it and Spark has not committed it."""
WRITERS = {"postgres": "postgres/writer.py:_write", "delta": "delta/writer.py:write"}


class Tables(SmallWorkspace):
    """A stream into each kind of table, and what their inputs were given."""

    def __init__(self, folder: Path, servers: str, topic: str, url: str) -> None:
        offsets = json.dumps({str(number): offset for number, offset in enumerate(PASSED_OVER)})
        body = PIPELINE.replace("SERVERS", servers).replace("TOPIC", topic)
        super().__init__(folder, body.replace("URL", url).replace("OFFSETS", offsets))
        self._producer = Producer({"bootstrap.servers": servers, "log_level": 0})
        self._topic, self._url = create_topic(servers, topic, PARTITIONS), url
        self.produced: list[list[int]] = [[] for _ in range(PARTITIONS)]

    def produce(self, numbers: Iterable[int]) -> None:
        """Append records to the partitions, unevenly. Values come more than once."""
        for number in numbers:
            partition = (0, 0, 0, 1, 1, 2)[number % 6]
            self.produced[partition].append(number % 10)
            self._producer.produce(self._topic, str(number % 10).encode(), partition=partition)
        assert self._producer.flush(30) == 0

    def land(self, number: int) -> None:
        """Add a file with two rows of its number, a minute newer than the one with the number before."""
        hidden = self.folder / f".{number}"
        hidden.write_text(f'{{"n":{number}}}\n{{"n":{number}}}\n')
        os.utime(hidden, (LANDED_S + 60 * number,) * 2)
        hidden.rename(self.folder / "landing" / f"{number}.json")

    def plan(self, goal: str, stream: str, *arguments: str) -> str:
        self.slackwater("plan", goal, stream, *arguments, "--out", "plan.json", "--force", *CONF)
        return str(json.loads((self.folder / "plan.json").read_text())["id"])

    def apply(self) -> None:
        self.slackwater("apply", "plan.json", "--yes", *CONF)

    def killed_apply(self, event: str, function: str) -> None:
        """Apply the plan, and kill -9 at an event of a function; its JVM exits when Python has."""
        kill_at_call(event, function, ("apply", "plan.json", "--yes", *CONF), self.folder)

    def type_next(self, stream: str) -> None:
        """Type the command that ``status`` prints for a stream with an unfinished operation."""
        shown = json.loads(self.slackwater("status", stream, "--format", "json", code=5).stdout)["streams"][0]
        assert shown["verdict"]["code"] == "operation-unfinished"
        name, *command = shlex.split(shown["next"])
        assert (name, command[0]) == ("slackwater", "apply")
        self.slackwater(*command, *CONF)

    def newest(self, stream: str, checkpoint: int) -> tuple[int, int]:
        """The newest planned and the newest committed batch of a checkpoint of a stream, by its number."""
        folder = self.folder / ".slackwater" / "streams" / "web" / stream / "checkpoints" / f"{checkpoint:04}"
        entries = [[path.name for path in (folder / log).glob("[0-9]*")] for log in ("offsets", "commits")]
        planned, committed = (max(map(int, names), default=-1) for names in entries)
        return planned, committed

    def numbers(self, stream: str) -> Numbers:
        """The rows of a table, each as often as it is there."""
        if stream == "postgres":
            with psycopg.connect(self._url) as connection:
                return Counter(number for (number,) in connection.execute("SELECT n FROM numbers"))
        table = self.folder / stream
        files = delta_logs.live_files(table) if stream == "delta" else iceberg_tables.live_files(table)
        tables = (pyarrow.parquet.ParquetFile(table / name).read() for name in files)
        return Counter(number for one in tables for number in one.column("n").to_pylist())

    def all_produced(self) -> Numbers:
        return Counter(number for partition in self.produced for number in partition)

    def before(self, offsets: Iterable[int]) -> Numbers:
        return Counter(
            number for partition, offset in zip(self.produced, offsets, strict=True) for number in partition[:offset]
        )


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker.start(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.mark.thorough
@pytest.mark.parametrize(
    "killed",
    [
        pytest.param({"postgres": PUBLISHED, "delta": PLANNED}, id="published-planned"),
        pytest.param({"postgres": PLANNED, "delta": PUBLISHED}, id="planned-published"),
    ],
)
def test_each_row_is_there_once(
    killed: dict[str, str], tmp_path: Path, broker: Broker, postgres: PostgresServer, request: pytest.FixtureRequest
) -> None:
    topic = f"{TOPIC}-{request.node.callspec.id}"
    tables = Tables(tmp_path / "tables", broker.bootstrap_servers, topic, postgres.url(postgres.new_database()))
    _pass_over(tables)

    for stream, event in killed.items():
        before, batch = tables.numbers(stream), tables.newest(stream, 1)[1] + 1
        operation = tables.plan("backfill", stream, "--from", "earliest")
        tables.killed_apply(event, WRITERS[stream])
        assert (tables.numbers(stream) != before) is (event == PUBLISHED)
        assert tables.newest(stream, 2) == (batch, batch - 1)
        tables.type_next(stream)
        assert tables.newest(stream, 2) == (batch, batch)
        assert tables.numbers(stream) == tables.all_produced()
        if stream == "postgres":
            tables.slackwater("undo", operation, "--yes", java=False)
            assert tables.numbers(stream) == before
            tables.apply()
            assert tables.numbers(stream) == tables.all_produced()
    _backfill_of_files(tables)

    tables.produce(range(30, 42))
    tables.land(4)
    tables.caught_up()
    assert tables.numbers("postgres") == tables.numbers("delta") == tables.all_produced()
    assert tables.numbers("iceberg") == _twice(0, 2, 3, 4)


def _pass_over(tables: Tables) -> None:
    """Two runs, after which each stream is behind rows that it has not read."""
    tables.produce(range(18))
    tables.land(0)
    tables.caught_up()
    at_start = [len(partition) for partition in tables.produced]
    tables.produce(range(18, 30))
    for number in (1, 2):
        tables.land(number)
    tables.plan("reset", "iceberg", "--from", "latest", "--output", "keep")
    tables.apply()
    tables.land(3)
    tables.caught_up()
    assert tables.numbers("postgres") == tables.all_produced() - tables.before(PASSED_OVER)
    assert tables.numbers("delta") == tables.all_produced() - tables.before(at_start)
    assert tables.numbers("iceberg") == _twice(0, 3)


def _backfill_of_files(tables: Tables) -> None:
    """One file of two is read, by its time; another backfill reads the other one, and is undone."""
    since = datetime.fromtimestamp(LANDED_S + 120, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    tables.plan("backfill", "iceberg", "--from", f"time:{since}")
    tables.apply()
    assert tables.numbers("iceberg") == _twice(0, 2, 3)

    operation = tables.plan("backfill", "iceberg")
    tables.apply()
    assert tables.numbers("iceberg") == _twice(0, 1, 2, 3)
    tables.slackwater("undo", operation, "--yes", java=False)
    assert tables.numbers("iceberg") == _twice(0, 2, 3)


def _twice(*numbers: int) -> Numbers:
    return Counter(numbers * 2)
