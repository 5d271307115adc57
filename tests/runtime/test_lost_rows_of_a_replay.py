"""A replayed batch whose records a real broker has removed fails, although the source leaves lost records out."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from examples.demo.broker import Broker
from slackwater.core.errors import Refused, StreamFailed
from slackwater.runtime.loader import load
from slackwater.runtime.program.logical_plan import analysed_plan, source_options, streaming_sources
from slackwater.runtime.program.unsupported import VERSION_1_READERS, strict_sources
from slackwater.runtime.replay.replay import SparkReplayer
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session
from tests.support.errors import raises_code
from tests.support.kafka_topics import create_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
TOPIC, RECORDS = "clicks", 10
RESTORE = "restore the source's data; nothing in use was changed"
PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("web")


@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def rows(spark):
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}")
    reader = reader.option("subscribe", "clicks").option("startingOffsets", "earliest")
    return reader.option("failondataLoss", "False").load().select("value")
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker.start(tmp_path / "kafka") as running:
        create_topic(running.bootstrap_servers, TOPIC)
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})
        for _ in range(RECORDS):
            producer.produce(TOPIC, b"x")
        assert producer.flush(30) == 0
        yield running


@pytest.fixture
def replayer(broker: Broker, tmp_path: Path) -> Iterator[SparkReplayer]:
    file = tmp_path / "clicks.py"
    file.write_text(PIPELINE.format(servers=broker.bootstrap_servers))
    options = SessionOptions("test", "local[1]", connectors=("kafka",))
    found = SparkReplayer(load(str(file)), "rows", options, home=tmp_path, say=lambda _: None, on_jvm=lambda _: None)
    yield found
    end_session(found.frame().sparkSession)


def test_a_batch_is_replayed_with_all_its_records_or_fails(
    broker: Broker, replayer: SparkReplayer, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"

    def replayed_rows(settings: dict[str, str] | None = None) -> int:
        for file in ("0", ".0.crc"):
            (checkpoint / "commits" / file).unlink(missing_ok=True)
        return replayer.run_pending(str(checkpoint), changelog=True, settings=settings)[1]

    assert replayed_rows() == RECORDS, "the batch is planned"
    assert replayed_rows() == RECORDS
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for deleted in admin.delete_records([TopicPartition(TOPIC, 0, 4)]).values():
        deleted.result(30)
    with raises_code(StreamFailed, "replay-failed", hint=RESTORE):
        replayed_rows()

    frame = replayer.frame()
    (relation,) = streaming_sources(analysed_plan(frame))
    with strict_sources(frame, "web/rows"):
        assert source_options(relation)["failondataLoss"] == "true"
    assert source_options(relation)["failondataLoss"] == "False", "a run of the query itself has the user's option"
    with raises_code(Refused, "replay-leaves-out", found="failondataLoss=False"):
        replayed_rows({VERSION_1_READERS: "org.apache.spark.sql.kafka010.KafkaSourceProvider"})
