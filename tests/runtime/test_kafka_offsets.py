"""The offsets that a real broker has, the oldest and the end, for each Kafka source of a query."""

import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from examples.demo.broker import Broker
from slackwater import connectors
from slackwater.checkpoint.logs import read_logs
from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.errors import EnvironmentMissing
from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.program.profile import profile_of
from slackwater.runtime.replay.positions import served_positions
from slackwater.runtime.run.no_data_batch import EndOfRun, backlog_of, reached_end
from slackwater.runtime.session.session import end_session
from slackwater.sources.common.contract import Served
from slackwater.storage.open import open_read_store
from tests.support.errors import raises_code

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
TOPICS = {"readings": 3, "clicks": 1, "clicks-old": 2}
REMOVED = {("readings", 1): 4, ("clicks", 0): 2}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker with ten records in each partition, of which it has removed the oldest in two."""
    with Broker.start(tmp_path / "kafka") as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        for future in admin.create_topics([NewTopic(name, count, 1) for name, count in TOPICS.items()]).values():
            future.result(30)
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})
        for name, count in TOPICS.items():
            for number in range(10 * count):
                producer.produce(name, b"x", partition=number % count)
        assert producer.flush(30) == 0
        removed = [TopicPartition(topic, partition, offset) for (topic, partition), offset in REMOVED.items()]
        for deleted in admin.delete_records(removed).values():
            deleted.result(30)
        yield running


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    jars = connectors.resolve(["kafka"], metadata.version("pyspark"))
    builder = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(map(str, jars)))
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path / "warehouse"))
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    yield session
    end_session(session)


def test_each_kafka_source_has_its_oldest_offsets(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    files = spark.readStream.schema("value BINARY").json(str(tmp_path / "in"))

    def kafka(servers: str = broker.bootstrap_servers, **options: str) -> DataFrame:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        for name, value in options.items():
            reader = reader.option(name, value)
        return reader.load().select("value")

    readings = kafka(subscribe="readings")
    query = (
        readings.union(files)
        .union(kafka(subscribePattern="clicks.*"))
        .union(kafka(assign='{"readings":[1]}', startingOffsets="latest"))
        .union(readings)
    )
    found = served_positions(query)

    assert {number: json.loads(served.earliest) for number, served in found.items()} == {
        "0": {"readings": {"0": 0, "1": 4, "2": 0}},
        "2": {"clicks": {"0": 2}, "clicks-old": {"0": 0, "1": 0}},
        "3": {"readings": {"1": 4}},
        "4": {"readings": {"0": 0, "1": 4, "2": 0}},
    }
    assert found["3"] == Served('{"readings":{"1":4}}', '{"readings":{"1":10}}')
    assert found["2"].latest == '{"clicks":{"0":10},"clicks-old":{"0":10,"1":10}}'
    # A topic that does not exist has no offsets.
    existing = Served('{"clicks":{"0":2}}', '{"clicks":{"0":10}}')
    assert served_positions(kafka(subscribe="absent, clicks")) == {"0": existing}
    assert served_positions(kafka(subscribe="absent")) == {"0": Served("{}", "{}")}
    # The numbers are those of Spark's own offset lines.
    checkpoint = tmp_path / "checkpoint"
    started = query.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    run = started.start()
    run.awaitTermination()
    lines = (checkpoint / "offsets" / "0").read_text().splitlines()[2:]
    assert len(profile_of(query).sources) == len(lines)
    assert {str(number) for number, line in enumerate(lines) if "readings" in line or "clicks" in line} == set(found)

    # What the query has not read, by the sources' own answers.
    store = open_read_store(str(checkpoint))
    newest = read_logs(store).newest_offset
    assert newest is not None
    assert backlog_of(query, store, newest) == "none"
    _check_end_of_run(run, newest, checkpoint)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("clicks-old", b"x", partition=1)
    assert producer.flush(30) == 0
    assert backlog_of(query, store, newest) == "unread"

    # The options of the source are those of the client that asks.
    impatient = {"kafka.default.api.timeout.ms": "2000", "kafka.request.timeout.ms": "1000"}
    with raises_code(EnvironmentMissing, "kafka-unreachable", where="127.0.0.1:1"):
        served_positions(kafka("127.0.0.1:1", subscribe="readings", **impatient))


def _check_end_of_run(run: StreamingQuery, newest: OffsetEntry, checkpoint: Path) -> None:
    """The recorded end of the run is where the newest batch is, and not where an earlier one was."""
    with Ledger.open(checkpoint.parent / "ledger.db", create=True) as ledger:
        ledger.register_stream(StreamRecord("web", "read", {"kind": "noop"}, "append", "read.py"))
        ledger.add_generation(generation := GenerationRecord("web/read", 1, str(checkpoint)))
        assert reached_end(ledger, generation, 0, newest) == "unknown"
        assert EndOfRun(run, ledger, generation, 1).record()
        assert reached_end(ledger, generation, 0, newest) == "end"
        earlier = newest.offsets[0]._replace(text='{"readings":{"0":1,"1":4,"2":0}}')
        assert reached_end(ledger, generation, 0, newest._replace(offsets=(earlier, *newest.offsets[1:]))) == "before"
