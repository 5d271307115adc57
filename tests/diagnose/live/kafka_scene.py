"""A stream that reads a Kafka topic, which is not in the stream's folder: each failure has a topic of its own."""

from __future__ import annotations

import json
import struct
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.diagnose.live.frame import FILES, READ, RUN, SETTINGS, Scene, Stream
from tests.restart.scenario import SCHEMA
from tests.restart.small import SOURCE, Saved
from tests.support.kafka_topics import WAIT_S, create_topic, values
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


def rows_of_file(number: int) -> list[dict[str, object]]:
    """The rows of what is one file elsewhere."""
    minutes = (number * 15 + one for one in MINUTES)
    return [{"ts": f"2024-01-01T{m // 60:02}:{m % 60:02}:00Z", "page": "a", "n": number + 1} for m in minutes]


def copied_to(servers: str, topic: str) -> str:
    """Rows of files to a topic, by Spark's own sink; while the file ``slow`` exists, a page ``wait`` delays a task."""
    return f"""
from pathlib import Path

FORMAT = "kafka"
OPTIONS = {{"kafka.bootstrap.servers": {servers!r}, "topic": {topic!r}}}


@pipeline.stream(sink=sw.sinks.kafka({topic!r}, bootstrap_servers={servers!r}))
def per_page(spark):
    wanted = "page <> 'wait'"
    if Path("slow").exists():
        wanted += " OR java_method('java.lang.Thread', 'sleep', 600000L) = 'never'"
    rows = {SOURCE}.where(wanted)
    return rows.select(F.to_json(F.struct("ts", "page", "n")).alias("value"))
"""


class TopicScene(Scene):
    """The folder of a stream whose output is a topic of its own."""

    def __init__(self, servers: str, folder: Path, query: str, settings: Sequence[str]) -> None:
        self.servers, self.topic = servers, create_topic(servers, f"{query}-{folder.name}")
        super().__init__(folder, copied_to(servers, self.topic), settings)
        # A copy of the checkpoint and of the output is made of every stream: this output is elsewhere.
        self.output.mkdir()

    def rows(self, first: int = 0, last: int | None = None) -> Rows:
        """The values of all records."""
        assert (first, last) == (0, None)
        return Counter((value or b"").decode() for value in values(self.servers, self.topic))


class KafkaScene(Scene):
    """The folder of a stream, and its topic of one partition."""

    def __init__(self, folder: Path, servers: str, topic: str) -> None:
        super().__init__(folder, query(servers, topic), SETTINGS)
        self.servers, self.topic = servers, create_topic(servers, topic)

    def arrive(self, first: int, last: int) -> None:
        """The rows that would be files elsewhere, as records."""
        self.produce(first, last, time.time())

    def produce(self, first: int, last: int, time_s: float) -> None:
        """Records that a producer sends at a time, which they have as their timestamp."""
        producer = Producer({"bootstrap.servers": self.servers})
        for number in range(first, last):
            for row in rows_of_file(number):
                producer.produce(self.topic, json.dumps(row).encode(), partition=0, timestamp=int(time_s * 1000))
            # What is one file elsewhere is a batch of its own in the log.
            producer.flush(WAIT_S)
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


def cut_log(topic_folder: Path, records: int) -> None:
    """Leave so many records in the only segment of a partition, while no broker runs."""
    # With it the broker would believe its indexes, and not read the log.
    (topic_folder.parent / ".kafka_cleanshutdown").unlink(missing_ok=True)
    file = topic_folder / f"{0:020}.log"
    data, at = file.read_bytes(), 0
    # Batches of records, format 2: base offset, length of what follows, and 16 bytes on, the offset of the last record.
    while at < len(data):
        base, length = struct.unpack_from(">qi", data, at)
        [last] = struct.unpack_from(">i", data, at + 23)
        if base + last >= records:
            break
        at += 12 + length
    with file.open("r+b") as log:
        log.truncate(at)
