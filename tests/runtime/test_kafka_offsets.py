"""The oldest offsets that a real broker still has, for each Kafka source of a query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from slackwater import connectors
from slackwater.demo.broker import Broker
from slackwater.errors import EnvironmentMissing
from slackwater.runtime.kafka_offsets import earliest_offsets
from slackwater.runtime.profile import profile_of
from slackwater.runtime.session import end_session

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
    found = earliest_offsets(query)

    assert {number: json.loads(offsets) for number, offsets in found.items()} == {
        "0": {"readings": {"0": 0, "1": 4, "2": 0}},
        "2": {"clicks": {"0": 2}, "clicks-old": {"0": 0, "1": 0}},
        "3": {"readings": {"1": 4}},
        "4": {"readings": {"0": 0, "1": 4, "2": 0}},
    }
    assert found["3"] == '{"readings":{"1":4}}'
    # A topic that does not exist has no offsets.
    assert earliest_offsets(kafka(subscribe="absent, clicks")) == {"0": '{"clicks":{"0":2}}'}
    # The numbers are those of Spark's own offset lines.
    checkpoint = tmp_path / "checkpoint"
    started = query.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    started.start().awaitTermination()
    lines = (checkpoint / "offsets" / "0").read_text().splitlines()[2:]
    assert len(profile_of(query).sources) == len(lines)
    assert {str(number) for number, line in enumerate(lines) if "readings" in line or "clicks" in line} == set(found)

    # The options of the source are those of the client that asks.
    impatient = {"kafka.default.api.timeout.ms": "2000", "kafka.request.timeout.ms": "1000"}
    with pytest.raises(EnvironmentMissing) as caught:
        earliest_offsets(kafka("127.0.0.1:1", subscribe="readings", **impatient))
    assert (caught.value.code, caught.value.where) == ("kafka-unreachable", "127.0.0.1:1")
