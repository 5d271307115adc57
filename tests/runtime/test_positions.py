"""The positions of real sources at each target: a query that continues there reads exactly the rows after it."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import DataFrame, SparkSession

from examples.demo.broker import Broker
from slackwater import connectors
from slackwater.core.checkpoint import OffsetEntry, OffsetMetadata, SourceOffset
from slackwater.core.errors import Refused, UsageError
from slackwater.core.targets import Target
from slackwater.formats.text_log import parse_offset_entry, render_offset_entry
from slackwater.ledger.recording.batch_history import offsets_by_source
from slackwater.operations.plan.targets import WantedPosition
from slackwater.runtime.replay.positions import COMPACT_INTERVAL, resolve
from slackwater.runtime.session.session import end_session
from slackwater.sources import kind_of
from slackwater.sources.common.contract import Claims, EmptyBase, Position, Range, SourceEntries, SourceRange
from tests.runtime.test_made_up_source import Pages
from tests.support.kafka_topics import create_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
NAMES = (
    *("k=1/a b.json", "k=1/c%20d.json", "k=2/e#f.json", "k=2/été.json", "k=1/plain.json"),
    *("k=3/new one.json", "k=3/ü+new.json"),
)
"""Without the wildcards ?, [ and {: Spark 4.1 reads other files of the batch twice next to such a name."""
READ = 5
BASE = 7
START_MS = 1_769_817_600_000
STEP_MS = 60_000
NOW_MS = START_MS + 100 * STEP_MS
TOPIC = "clicks"
RECORDS = ((0, 0, 0, 0, 1, 1, 2), (0, 0, 1, 3))
"""The partition of each record: those of the first run, and those that came later."""


class Hubs(Pages):
    @classmethod
    def name(cls) -> str:
        return "hubs"


@dataclass(frozen=True)
class Query:
    frame: DataFrame
    current: Mapping[str, str | None]
    logs: Mapping[str, SourceEntries]
    folder: Path
    """Of checkpoints."""

    def resolve(
        self, target: Target, *, offsets: Mapping[str, str] | None = None, only_source: str | None = None
    ) -> Mapping[str, Position]:
        wanted = WantedPosition((target, offsets), self.current, self.logs, NOW_MS, only_source)
        return resolve(self.frame, wanted)

    def read_from(self, target: Target, **options: Any) -> list[int]:
        """What a query reads whose new checkpoint continues from the target."""
        bases = {source: position.base for source, position in self.resolve(target, **options).items()}
        return sorted(chain.from_iterable(_run(self.frame, self._checkpoint(bases)).values()))

    def ranges(self, start: Target, end: Target | None, read: Sequence[SourceRange] = ()) -> Mapping[str, Range]:
        """The range of each source; without an end up to what batches have read."""
        first, last = self.resolve(start), self.resolve(end or Target("latest"))
        return {
            source: kind_of(position.base.end, {}).range_between(
                position.base,
                last[source].base,
                Claims(
                    SourceRange(source, None, self.current[source], self.logs[source]),
                    [one for one in read if one.source == source],
                    interval=2,
                ),
                to_next=end is None,
            )
            for source, position in first.items()
        }

    def read_between(self, start: Target, end: Target | None, read: Sequence[SourceRange] = ()) -> list[int]:
        """What the first batch reads where it is planned as such a range."""
        found = self.ranges(start, end, read)
        bases = {source: EmptyBase(one.start, one.log) for source, one in found.items()}
        ends = {source: EmptyBase(one.end, one.log) for source, one in found.items()}
        return sorted(_run(self.frame, self._checkpoint(bases, ends)).get(BASE + 1, []))

    def _checkpoint(self, bases: Mapping[str, EmptyBase], planned: Mapping[str, EmptyBase] | None = None) -> Path:
        """A new checkpoint with these positions, and the next batch planned up to others."""
        checkpoint = self.folder / str(time.monotonic_ns())
        # Spark reads the entry before the newest one, too.
        for batch, ends in [(BASE - 1, bases), (BASE, bases), *([(BASE + 1, planned)] if planned else [])]:
            offsets = tuple(SourceOffset(source, base.end) for source, base in ends.items())
            entry = OffsetEntry(1, OffsetMetadata(0, START_MS, {}), offsets)
            _write(checkpoint / "offsets" / str(batch), render_offset_entry(entry))
        for batch in (BASE - 1, BASE):
            _write(checkpoint / "commits" / str(batch), b'v1\n{"nextBatchWatermarkMs":0}')
        for source, base in (planned or bases).items():
            for name, content in base.log.items():
                _write(checkpoint / "sources" / source / name, content)
        return checkpoint

    def refused(self, target: Target, **options: Any) -> tuple[str, str]:
        """The code, and all that the error names."""
        with pytest.raises((Refused, UsageError)) as caught:
            self.resolve(target, **options)
        return caught.value.code, str(caught.value)


@dataclass
class Files:
    folder: Path
    written: list[Path] = field(default_factory=list)

    def add(self, count: int) -> None:
        for number in range(len(self.written), len(self.written) + count):
            path = self.folder / NAMES[number]
            _write(path, f'{{"id":{number}}}\n'.encode())
            at_s = (START_MS + number * STEP_MS) / 1000
            os.utime(path, (at_s, at_s))
            self.written.append(path)

    def frame(self, spark: SparkSession, **options: str) -> DataFrame:
        return spark.readStream.schema("id INT").options(**options).json(str(self.folder)).select("id")


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _run(frame: DataFrame, checkpoint: Path) -> dict[int, list[int]]:
    """The rows that an available-now run reads, by batch."""
    rows: dict[int, list[int]] = {}
    writer = frame.writeStream.foreachBatch(lambda batch, number: rows.update({number: _ids(batch)}))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows


def _ids(frame: DataFrame) -> list[int]:
    return [row.id for row in frame.collect()]


def _recorded(frame: DataFrame, checkpoint: Path) -> Query:
    newest = max(checkpoint.glob("offsets/[0-9]*"), key=lambda path: int(path.name))
    logs: dict[str, dict[int, str]] = {}
    for entry in checkpoint.glob("sources/*/[0-9]*"):
        logs.setdefault(entry.parent.name, {})[int(entry.name)] = entry.read_text()
    current = offsets_by_source(parse_offset_entry(newest.read_bytes()))
    return Query(frame, current, logs, checkpoint.parent / "continued")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = connectors.resolve(["kafka"], metadata.version("pyspark"))
    builder = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(map(str, jars)))
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    builder = builder.config("spark.sql.streaming.fileSource.cleaner.numThreads", "0")
    with mock.patch.dict(os.environ, {"PYSPARK_PYTHON": sys.executable}):
        session = builder.config("spark.ui.enabled", "false").getOrCreate()
        yield session
        # With its JVM: the next tests of this process need other connectors.
        end_session(session)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker.start(tmp_path_factory.mktemp("broker") / "kafka") as running:
        yield running.bootstrap_servers


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "in put")


@pytest.fixture
def of_files(spark: SparkSession, files: Files, tmp_path: Path) -> Query:
    """A query that has read five files, two a batch; two more came since."""
    files.add(READ)
    checkpoint = tmp_path / "first"
    assert _run(files.frame(spark, maxFilesPerTrigger="2"), checkpoint) == {0: [0, 1], 1: [2, 3], 2: [4]}
    files.add(len(NAMES) - READ)
    return _recorded(files.frame(spark), checkpoint)


def test_targets_of_a_file_source(of_files: Query, files: Files, spark: SparkSession) -> None:
    query = of_files
    third_ms = START_MS + 3 * STEP_MS
    assert query.read_from(Target("earliest")) == [0, 1, 2, 3, 4, 5, 6]
    assert query.read_from(Target("latest")) == []
    assert query.read_from(Target("time", third_ms)) == [3, 4, 5, 6]
    assert query.read_from(Target("by", NOW_MS - third_ms - 1)) == [4, 5, 6]
    assert query.read_from(Target("shift", -2)) == [3, 4, 5, 6]
    assert query.read_from(Target("shift", 1)) == [6]
    assert query.read_from(Target("shift", 0)) == [5, 6]
    assert query.read_from(Target("offsets", file="f"), offsets={"0": '{"logOffset":0}'}) == [2, 3, 4, 5, 6]
    assert query.resolve(Target("time", third_ms))["0"].summary == (
        f"source 0 (FileSource[{files.folder}]): "
        "5 files read -> 3; 2 are to be read again; 2 are to be read for the first time"
    )
    assert query.resolve(Target("earliest"))["0"].base.end == '{"logOffset":-1}'

    assert query.refused(Target("time", NOW_MS + 1))[0] == "target-out-of-range"
    assert "expected shift:-5 to shift:+2" in query.refused(Target("shift", -6))[1]
    assert "expected shift:-5 to shift:+2" in query.refused(Target("shift", 3))[1]
    assert "expected -1 to 2" in query.refused(Target("offsets", file="f"), offsets={"0": '{"logOffset":3}'})[1]
    assert query.refused(Target("offsets", file="f"), offsets={"0": '{"clicks":{"0":3}}'})[0] == "target"
    assert query.refused(Target("offsets", file="f"), offsets={"clicks": '{"logOffset":0}'})[0] == "target"
    files.written[4].unlink()
    assert "plain.json" in query.refused(Target("shift", -2))[1]
    unrecorded = Query(query.frame, query.current, {"0": {2: query.logs["0"][2]}}, query.folder)
    assert unrecorded.refused(Target("shift", -1))[0] == "target-unsupported"
    assert (
        "): an unknown number of files read -> 6; 0 are to be read" in unrecorded.resolve(Target("latest"))["0"].summary
    )
    twice = Query(query.frame.union(query.frame), {}, {}, query.folder)
    assert "source 1 is source 0 again" in twice.refused(Target("earliest"))[1]
    rate = spark.readStream.format("rate").load().selectExpr("CAST(value AS INT) AS id")
    assert "of an unknown kind" in Query(rate, {}, {}, query.folder).refused(Target("earliest"))[1]


def test_files_that_only_count_as_read_are_not_cleaned(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    files.add(2)
    query = Query(files.frame(spark, cleanSource="delete"), {}, {}, tmp_path / "continued")
    before = spark.conf.get(COMPACT_INTERVAL)
    spark.conf.set(COMPACT_INTERVAL, "2")
    try:
        assert sorted(query.resolve(Target("latest"))["0"].base.log) == ["1.compact"]
        assert query.read_from(Target("shift", 1)) == [1]
    finally:
        spark.conf.set(COMPACT_INTERVAL, before or "10")

    assert files.written[0].exists()


def _send(servers: str, first: int, partitions: tuple[int, ...]) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number, partition in enumerate(partitions, first):
        at_ms = START_MS + number * STEP_MS
        producer.produce(TOPIC, str(number).encode(), partition=partition, timestamp=at_ms)
    assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def of_kafka(spark: SparkSession, servers: str, tmp_path_factory: pytest.TempPathFactory) -> Query:
    """A query that has read three partitions; since then a fourth and more records came, and the oldest was removed."""
    create_topic(servers, TOPIC, 3, retention_ms="-1")
    _send(servers, 0, RECORDS[0])
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", TOPIC)
    options = {"startingOffsets": "earliest", "kafka.metadata.max.age.ms": "100", "kafka.fetch.max.wait.ms": "10"}
    frame = reader.options(**options).load().selectExpr("CAST(CAST(value AS STRING) AS INT) AS id")
    checkpoint = tmp_path_factory.mktemp("kafka") / "first"
    assert sorted(chain.from_iterable(_run(frame, checkpoint).values())) == [0, 1, 2, 3, 4, 5, 6]
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_partitions([NewPartitions(TOPIC, 4)])[TOPIC].result(30)
    _send(servers, len(RECORDS[0]), RECORDS[1])
    for removed in admin.delete_records([TopicPartition(TOPIC, 0, 1)]).values():
        removed.result(30)
    return _recorded(frame, checkpoint)


def test_targets_of_a_kafka_source(of_kafka: Query) -> None:
    query = of_kafka
    assert query.read_from(Target("earliest")) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert query.resolve(Target("latest"))["0"].base.end == '{"clicks":{"0":6,"1":3,"2":1,"3":1}}'
    since = Target("time", START_MS + 5 * STEP_MS)
    assert query.read_from(since) == [5, 6, 7, 8, 9, 10]
    assert query.resolve(Target("by", NOW_MS - since.number)) == query.resolve(since)
    assert query.read_from(Target("shift", -1)) == [3, 5, 6, 7, 8, 9, 10]
    assert query.read_from(Target("offsets", file="f"), offsets={"0": json.dumps({TOPIC: {"1": 1, "0": 5}})}) == [
        5,
        8,
        9,
        10,
    ]
    assert query.resolve(Target("shift", -1))["0"].summary == (
        "source 0 (kafka): clicks-0: 4 -> 3, clicks-1: 2 -> 1, clicks-2: 1 -> 0, clicks-3: new -> 0; "
        "3 offsets are to be read again"
    )
    late = query.resolve(Target("time", START_MS + 9 * STEP_MS))["0"]
    assert late.base.end == '{"clicks":{"0":6,"1":2,"2":1,"3":0}}'
    assert late.summary.endswith("; 2 offsets are skipped; no record of that time or later: clicks-0, clicks-2")

    assert "expected clicks-2: 0 to 1; found clicks-2: -1" in query.refused(Target("shift", -2))[1]
    assert query.refused(Target("shift", 2**63 - 1))[0] == "target-out-of-range"
    for offsets, named in (
        ({TOPIC: {"0": 0}}, "expected clicks-0: 1 to 6; found clicks-0: 0"),
        ({TOPIC: {"1": 4}}, "expected clicks-1: 0 to 3; found clicks-1: 4"),
        ({TOPIC: {"4": 0}}, "found clicks-4"),
        ({"other": {"0": 0}}, "found other-0"),
    ):
        code, text = query.refused(Target("offsets", file="f"), offsets={"0": json.dumps(offsets)})
        assert (code, named in text) == ("target-out-of-range", True)
    assert query.refused(Target("offsets", file="f"), offsets={"0": '{"logOffset":0}'})[0] == "target"
    never_run = Query(query.frame, {}, {}, query.folder)
    assert never_run.refused(Target("shift", 0))[0] == "target-unsupported"
    assert (
        never_run.refused(Target("offsets", file="f"), offsets={"0": '{"clicks":{"0":1}}'})[0] == "target-unsupported"
    )
    # As Event Hubs: another source that writes the shapes of Kafka.
    session = query.frame.sparkSession
    session.dataSource.register(Hubs)
    other = Query(session.readStream.format("hubs").load(), query.current, query.logs, query.folder)
    assert other.resolve(Target("earliest"))["0"].base.end == '{"clicks":{"0":0,"1":0,"2":0}}'
    assert other.refused(Target("latest"))[0] == "target-unsupported"
    replaced = Query(query.frame, {"0": '{"logOffset":0}'}, {}, query.folder)
    assert "expected kafka; found files" in replaced.refused(Target("earliest"))[1]
    rate = Query(session.readStream.format("rate").load(), query.current, query.logs, query.folder)
    assert "found kafka" in rate.refused(Target("earliest"))[1]


def test_with_committed_records_only_the_end_is_before_an_open_transaction(spark: SparkSession, servers: str) -> None:
    topic = create_topic(servers, "orders")
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "t"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"1")
    assert producer.flush(30) == 0

    ends = []
    for level in ("read_uncommitted", "read_committed"):
        options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "kafka.isolation.level": level}
        query = Query(spark.readStream.format("kafka").options(**options).load(), {}, {}, Path())
        ends.append(query.resolve(Target("latest"))["0"].base.end)
    producer.abort_transaction(30)
    assert ends == ['{"orders":{"0":1}}', '{"orders":{"0":0}}']


@pytest.mark.parametrize("pattern", ["visits", ".*"])
def test_a_pattern_and_an_assignment_select_the_partitions_that_spark_reads(
    spark: SparkSession, servers: str, tmp_path: Path, pattern: str
) -> None:
    for topic in ("visits", "web-visits"):
        if topic not in AdminClient({"bootstrap.servers": servers}).list_topics(timeout=30).topics:
            create_topic(servers, topic)
    # Kafka creates __consumer_offsets for the first group.
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["visits"])
    deadline = time.monotonic() + 30
    while "__consumer_offsets" not in consumer.list_topics(timeout=30).topics and time.monotonic() < deadline:
        consumer.poll(0.2)
    assert "__consumer_offsets" in consumer.list_topics(timeout=30).topics
    consumer.close()

    internal = '{"visits":[0,9],"none":[0],"__consumer_offsets":[0]}'
    for selection, value in (("subscribePattern", f" {pattern} "), ("assign", internal)):
        options = {"kafka.bootstrap.servers": servers, selection: value, "startingOffsets": "latest"}
        frame = spark.readStream.format("kafka").options(**options).load().selectExpr("0 AS id")
        found = json.loads(Query(frame, {}, {}, tmp_path).resolve(Target("latest"))["0"].base.end or "")
        if selection == "assign":
            assert found == {"visits": {"0": 0}}
            continue
        _run(frame, tmp_path / "first")
        assert found == json.loads(_recorded(frame, tmp_path / "first").current["0"] or "")
        assert {"visits", "web-visits"} <= found.keys()
        assert "__consumer_offsets" not in found


def test_one_source_of_several_moves_alone(of_kafka: Query, of_files: Query) -> None:
    query = Query(
        of_files.frame.union(of_kafka.frame),
        {"0": of_files.current["0"], "1": of_kafka.current["0"]},
        {"0": of_files.logs["0"], "1": of_kafka.logs["0"]},
        of_files.folder,
    )
    assert query.read_from(Target("latest"), only_source="1") == [5, 6]
    assert query.read_from(Target("latest"), only_source="0") == [7, 8, 9, 10]
    assert query.read_from(Target("offsets", file="f"), offsets={"0": '{"logOffset":1}'}) == [4, 5, 6, 7, 8, 9, 10]
    assert query.read_between(Target("shift", -1), Target("shift", 0)) == [3, 4, 5, 6]
    assert query.read_between(Target("time", START_MS), Target("shift", 0)) == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6]
    with pytest.raises(Refused, match="the range ends before it starts"):
        query.ranges(Target("shift", 0), Target("shift", -1))
    # Kafka: 0 to 3 of the first partition, of which one was removed; batches have read from 2 on.
    read = [
        SourceRange("0", None, '{"logOffset":0}', query.logs["0"]),
        SourceRange("1", '{"clicks":{"0":2,"1":0,"2":0}}', query.current["1"] or "", query.logs["1"]),
    ]
    assert query.read_between(Target("earliest"), None, read) == [1, 2, 3, 4]
    assert query.read_between(Target("shift", 0), None, read) == []
    summaries = {source: one.summary for source, one in query.ranges(Target("earliest"), None, read).items()}
    assert summaries == {
        "0": "3 files; 2 that batches have read left out; 2 that the stream reads by itself left out",
        "1": "1 offsets; clicks-0: 1 -> 2, clicks-1: 0 -> 0, clicks-2: 0 -> 0 and 1 more",
    }
    assert query.resolve(Target("latest"), only_source="1")["0"].summary.endswith("): does not move")

    assert query.refused(Target("latest"), only_source="2")[0] == "target"
    assert query.refused(Target("offsets", file="f"), offsets={"0": '{"logOffset":1}'}, only_source="1")[0] == "target"
    fewer = Query(of_files.frame, query.current, {}, query.folder)
    assert fewer.refused(Target("latest"))[0] == "target-unsupported"
    assert [*fewer.resolve(Target("earliest"))] == ["0"], "all sources begin again, however many were recorded"
