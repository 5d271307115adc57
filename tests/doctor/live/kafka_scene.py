"""A stream that reads a Kafka topic, which is not in the stream's folder: each failure has a topic of its own."""

from __future__ import annotations

import json
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.doctor.live.frame import FILES, READ, RUN, SETTINGS, Scene, Stream
from tests.restart.scenario import SCHEMA
from tests.restart.small import Saved
from tests.support.kafka_topics import WAIT_S, create_topic
from tests.support.outputs import Rows

MINUTES = (0, 4, 9, 13)
RECORDS = len(MINUTES)
"""Records of what is one file elsewhere."""


def query(servers: str, topic: str) -> str:
    """Rows of a topic to Parquet."""
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    given = "".join(f"\n        .option({name!r}, {value!r})" for name, value in options.items())
    return f"""
@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    records = (
        spark.readStream.format("kafka"){given}
        .option("failOnDataLoss", "true")
        .load()
    )
    parsed = records.select(F.from_json(F.col("value").cast("string"), "{SCHEMA}").alias("row"))
    return parsed.select("row.*")
"""


class KafkaScene(Scene):
    """The folder of a stream, and its topic of one partition."""

    def __init__(self, folder: Path, servers: str, topic: str) -> None:
        super().__init__(folder, query(servers, topic), SETTINGS)
        self.servers, self.topic = servers, create_topic(servers, topic)

    def arrive(self, first: int, last: int) -> None:
        """The rows that would be files elsewhere, as records."""
        producer = Producer({"bootstrap.servers": self.servers})
        for number in range(first, last):
            for minute in (number * 15 + one for one in MINUTES):
                row = {"ts": f"2024-01-01T{minute // 60:02}:{minute % 60:02}:00Z", "page": "a", "n": number + 1}
                producer.produce(self.topic, json.dumps(row).encode(), partition=0)
        assert producer.flush(WAIT_S) == 0

    def delete_before(self, offset: int) -> None:
        """The brokers remove the records before an offset, as their retention does."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        for removed in admin.delete_records([TopicPartition(self.topic, 0, offset)]).values():
            removed.result(WAIT_S)

    def recreate(self) -> None:
        """Delete the topic, and create it again."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.delete_topics([self.topic])[self.topic].result(WAIT_S)
        create_topic(self.servers, self.topic)


def make_kafka_stream(folder: Path, servers: str, topic: str, rows: Rows) -> Stream:
    """Run the stream until it has read the records of five files."""
    scene = KafkaScene(folder / "scene", servers, topic)
    scene.arrive(0, READ)
    scene.slackwater(*RUN)
    return Stream(scene, Saved(scene, folder / "saved"), rows, folder)


def uninterrupted(folder: Path, servers: str, topic: str) -> Rows:
    """The rows of the query when Spark alone reads all records, and nothing happens."""
    whole = KafkaScene(folder, servers, topic)
    whole.arrive(0, FILES)
    ended = whole.by_spark_alone(folder / "checkpoint")
    assert ended.returncode == 0, ended.stderr
    return whole.rows()
