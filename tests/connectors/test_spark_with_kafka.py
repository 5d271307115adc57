"""The locked Kafka jars in a real Spark: read, write, and continue after a stop, against a real broker."""

from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from examples.demo.broker import Broker
from slackwater import connectors
from slackwater.runtime.session.session import end_session

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
TOPICS = ("readings", "copies")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker.start(tmp_path / "kafka") as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        for future in admin.create_topics([NewTopic(topic, 3, 1) for topic in TOPICS]).values():
            future.result(30)
        yield running


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    jars = connectors.resolve(["kafka"], metadata.version("pyspark"))
    builder = SparkSession.builder.master("local[2]").config("spark.jars", ",".join(map(str, jars)))
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path / "warehouse"))
    session = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    end_session(session)


def _produce(broker: Broker, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number, value in enumerate(values):
        producer.produce("readings", value.encode(), partition=number % 3)
    assert producer.flush(30) == 0


def _copy_what_is_there(spark: SparkSession, broker: Broker, checkpoint: Path) -> None:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    rows = source.option("subscribe", "readings").option("startingOffsets", "earliest").load().select("value")
    sink = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    query = sink.option("topic", "copies").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query.start().awaitTermination()


def test_rows_pass_once_each_also_over_a_restart(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    first, second = [f"first {n}" for n in range(20)], [f"second {n}" for n in range(20)]
    _produce(broker, first)
    _copy_what_is_there(spark, broker, tmp_path / "checkpoint")
    _produce(broker, second)
    _copy_what_is_there(spark, broker, tmp_path / "checkpoint")
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "test", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["copies"])
    try:
        records = consumer.consume(40, timeout=60)
        records += consumer.consume(1, timeout=1)
    finally:
        consumer.close()
    assert Counter((record.value() or b"").decode() for record in records) == Counter(first + second)
