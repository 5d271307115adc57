"""Failures of a Kafka source, on a real broker."""

import json
import os
import shutil
import struct
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from examples.demo.broker import Broker
from slackwater.sources.kafka.live import CLOCKS_DIFFER_MS
from tests.diagnose.live.frame import (
    FILES,
    READ,
    RUN,
    SETTINGS,
    Failure,
    Scene,
    Silent,
    Stops,
    Stream,
    findings_of,
    in_gate,
    make_stream,
    prove,
    type_all,
)
from tests.restart.scenario import SCHEMA
from tests.restart.small import SOURCE, Saved
from tests.support.kafka_topics import WAIT_S, create_topic, values
from tests.support.killing import kill_when
from tests.support.outputs import Rows, row_text

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

MINUTES = (0, 4, 9, 13)
RECORDS = len(MINUTES)
"""Records of what is one file elsewhere."""


def query(servers: str, topic: str) -> str:
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


RECREATED = READ + 6
"""The end of the files whose rows the new topic has: more than the old one had."""
REMOVED = "('n', '6')"
"""What the rows have in common whose records are removed before they are read."""
FAILS, GOES_ON = '"failOnDataLoss", "true"', '"failOnDataLoss", "false"'


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker.start(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, servers: str) -> Rows:
    return uninterrupted(tmp_path_factory.mktemp("whole") / "scene", servers, "whole")


def of_kafka(scene: Scene) -> KafkaScene:
    assert isinstance(scene, KafkaScene)
    return scene


def expired(scene: Scene) -> None:
    """While the stream is stopped, records arrive, and retention removes the oldest of them."""
    scene.arrive(READ, FILES)
    of_kafka(scene).delete_before((READ + 1) * RECORDS)


def expired_unnoticed(scene: Scene) -> None:
    """The query has the option that ignores it."""
    scene.change_code(FAILS, GOES_ON)
    expired(scene)


def recreated(scene: Scene) -> None:
    """The topic is deleted and created again; fewer records arrive than the old one had."""
    of_kafka(scene).recreate()


def recreated_with_more(scene: Scene) -> None:
    """The topic is deleted and created again; soon it has more records than the stream has read of the old one."""
    of_kafka(scene).recreate()
    of_kafka(scene).produce(READ, RECREATED, time.time() + CLOCKS_DIFFER_MS / 1000 + 2)


def of_both_topics(stream: Stream) -> Rows:
    """What the old topic had until the failure, and all that the new one has."""
    new = (row for number in range(READ, RECREATED) for row in rows_of_file(number))
    return stream.written + Counter(row_text({**row, "ts": str(row["ts"])[:19].replace("T", " ")}) for row in new)


def reset_by_hand(scene: Scene) -> None:
    """Somebody deletes the checkpoint, and the query starts at the end of the topic."""
    scene.change_code("'startingOffsets', 'earliest'", "'startingOffsets', 'latest'")
    scene.arrive(READ, FILES)
    shutil.rmtree(scene.checkpoint)


def start_changed(scene: Scene) -> None:
    """A release has another start position, as if that moved a query that has read five files."""
    scene.change_code("'startingOffsets', 'earliest'", "'startingOffsets', 'latest'")


def consent(scene: Scene) -> None:
    """Read how many records are lost, and accept the loss, as the advice says."""
    [stream] = json.loads(scene.type("slackwater doctor --format json").stdout)["streams"]
    [found] = stream["findings"]
    assert found["at_stake"] == f"{RECORDS} records"
    text = (scene.folder / "clicks.py").read_text()
    (scene.folder / "clicks.py").write_text(text.replace(FAILS, GOES_ON))


def without_removed(stream: Stream) -> Rows:
    left = Counter({row: times for row, times in stream.rows.items() if REMOVED not in row})
    assert left.total() == stream.rows.total() - RECORDS
    return left


FAILURES = [
    Failure(
        "KAFKA-01", "retention has removed unread records", expired,
        spark=Stops("Some data may have been lost because they are not available in Kafka any more"),
        found="SW-KAFKA-001", risk="loss", goal="backfill", by_hand=consent, typed=("run",),
        expected=without_removed, all_arrived=True,
    ),
    Failure(
        "KAFKA-01", "and Spark leaves them out silently", expired_unnoticed,
        spark=Silent(),
        found="SW-KAFKA-001", risk="loss", goal="backfill", by_hand=consent, typed=("run",),
        expected=without_removed, all_arrived=True,
    ),
    Failure(
        "KAFKA-02", "the topic was created again", recreated,
        spark=Stops("Some data may have been lost because they are not available in Kafka any more"),
        found="SW-KAFKA-003", risk="loss", goal="reset", typed=("plan reset", "apply", "run"),
    ),
    Failure(
        "KAFKA-03", "the topic was created again, and has more records", recreated_with_more,
        spark=Silent(lacks=READ * RECORDS),
        found="SW-KAFKA-003", risk="loss", goal="reset", typed=("plan reset", "apply", "run"),
        expected=of_both_topics, all_arrived=True,
    ),
    Failure(
        "KAFKA-07", "startingOffsets was changed to rewind", start_changed,
        spark=Silent(),
        found="start-position-ignored", risk="none", goal=None, typed=("run",),
        doctor="slackwater doctor --pipeline clicks.py",
    ),
    Failure(
        "KAFKA-09", "the checkpoint was deleted, and the query starts with latest", reset_by_hand,
        spark=Silent(lacks=(FILES - READ) * RECORDS),
        found="checkpoint-lost", risk="skip", goal="rebuild", typed=("plan rebuild", "apply", "run"),
        all_arrived=True,
    ),
]  # fmt: skip


@pytest.mark.parametrize("failure", in_gate(FAILURES, "KAFKA-01"))
def test_damaged_kafka(tmp_path_factory: pytest.TempPathFactory, servers: str, rows: Rows, failure: Failure) -> None:
    stream = make_kafka_stream(tmp_path_factory.mktemp("kafka"), servers, f"clicks-{FAILURES.index(failure)}", rows)
    prove(stream, failure)


@pytest.mark.thorough
def test_a_log_that_was_cut_at_its_end_is_read_from_the_end_that_is_left(tmp_path: Path, rows: Rows) -> None:
    folder = tmp_path / "broker"
    with Broker.start(folder) as broker:
        scene = of_kafka(make_kafka_stream(tmp_path, broker.bootstrap_servers, "cut", rows).scene)
        written = scene.rows()
    cut_log(folder / "data/cut-0", (READ - 2) * RECORDS)
    with Broker.start(folder, broker.port):
        # Of the two files whose records are gone, as many come again as one has: rows that the stream has not read.
        scene.arrive(READ, READ + 1)
        [found] = findings_of(scene)
        assert (found["code"], found["next"]) == (
            "SW-KAFKA-015",
            "slackwater plan reset web/per_page --from shift:0 --output keep",
        )
        assert found["found"] == f"end {(READ - 1) * RECORDS}"

        assert type_all(scene) == ["plan reset", "apply", "run"]
        assert scene.rows() == written, "nothing twice; what came before the new end is left out, as the check says"

        scene.arrive(READ + 1, FILES)
        scene.slackwater(*RUN)
        left_out = Counter(row_text({**row, "ts": str(row["ts"])[:19].replace("T", " ")}) for row in rows_of_file(READ))
        assert scene.rows() == rows - left_out


def killed_after_the_records(scene: Scene) -> None:
    """Python and JVM are killed when the topic has all records of a batch, whose task has not ended."""
    (scene.folder / "slow").touch()
    scene.arrive(READ, READ + 1)
    file = scene.folder / "landing" / f"f{READ}.json"
    written = file.stat()
    with file.open("a") as rows:
        rows.write(json.dumps({"ts": "2024-01-01T01:15:00Z", "page": "wait", "n": 0}) + "\n")
    os.utime(file, (written.st_atime, written.st_mtime))
    process = scene.start(*RUN)
    arrived = (READ + 1) * RECORDS
    kill_when(process, lambda: scene.rows().total() == arrived, (scene.checkpoint / "offsets" / str(READ)).exists)
    (scene.folder / "slow").unlink()
    scene.arrive(READ + 1, FILES)
    assert (scene.newest, scene.ids("commits")[-1]) == (READ, READ - 1)


def counted_as_done(scene: Scene) -> None:
    """The topic has all rows of the interrupted batch: what doctor prints for this is typed."""
    assert scene.rows().total() == (READ + 1) * RECORDS
    [found] = [one for one in findings_of(scene) if one["code"] == "SW-SINK-003"]
    done = scene.type(found["advice"].partition("start the query after: ")[2])
    assert done.returncode == 0, done.stderr


RESENT = Failure(
    "SINK-05",
    "killed between Spark's Kafka sink and the commit",
    killed_after_the_records,
    spark=Silent(wrong=RECORDS),
    found="SW-SINK-003",
    risk="duplicate",
    goal="resume",
    by_hand=counted_as_done,
    typed=("run",),
    all_arrived=True,
    left=("at-least-once",),
)


@pytest.mark.thorough
@pytest.mark.parametrize("failure", [RESENT], ids=str)
def test_written_to_kafka(tmp_path: Path, servers: str, failure: Failure) -> None:
    kind = partial(TopicScene, servers)
    first, second = (make_stream(tmp_path / topic, topic, SETTINGS, kind) for topic in ("resent-1", "resent-2"))
    prove(first, failure, second)
