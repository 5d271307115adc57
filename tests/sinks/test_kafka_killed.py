"""Kafka sinks in a real Spark: killed at each point of a batch, rebuilt, read by a later stage, at least once."""

import json
import shutil
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer

import slackwater as sw
from examples.demo.broker import Broker
from slackwater.sinks.common.registry import open_output
from tests.runtime.project import Project
from tests.support.kafka_proxy import END_TXN, INIT_PRODUCER_ID, PRODUCE, KafkaProxy, What, kafka_proxy
from tests.support.kafka_topics import create_topic, values

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
PIPELINE = """
import time
from pathlib import Path

import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")
HOLD = Path("{folder}/hold")


def passed(number):
    while HOLD.exists():
        time.sleep(0.05)
    return number


@pipeline.stream(sink=sw.sinks.kafka("{topic}", bootstrap_servers="{servers}", exactly_once={exactly_once}))
def rows(spark):
    read = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")
    return read.select(F.to_json(F.struct(F.udf(passed, "long")("id").alias("id"))).alias("value"))
"""
LATER = """

@pipeline.stream(sink=sw.sinks.files("json", "out"))
def copied(spark, context):
    options = {{"subscribe": context.output("rows"), "startingOffsets": "earliest"}}
    read = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}").options(**options)
    committed = read.option("kafka.isolation.level", "read_committed").load()
    return committed.select(F.from_json(F.col("value").cast("string"), "id LONG").alias("row")).select("row.*")
"""
POINTS: dict[str, tuple[int, What, bool]] = {
    "after staging": (INIT_PRODUCER_ID, "request", False),
    "before the commit": (END_TXN, "request", False),
    "after the commit": (END_TXN, "reply", True),
}
"""The request at which a batch is held until the kill, and whether its rows can then be read."""


@pytest.fixture
def proxy(broker: Broker) -> Iterator[KafkaProxy]:
    with kafka_proxy(broker.port) as proxy:
        yield proxy


def _pipeline(project: Project, topic: str, servers: str, *, exactly_once: bool = True, later: bool = False) -> None:
    text = PIPELINE + (LATER if later else "")
    project.write(text.format(folder=project.folder, topic=topic, servers=servers, exactly_once=exactly_once))


def _ids(servers: str, topic: str, isolation: str = "read_committed") -> list[int]:
    return sorted(json.loads(value or b"")["id"] for value in values(servers, topic, isolation))


def _written(servers: str, topic: str) -> int | None:
    sink: Any = sw.sinks.kafka(topic, bootstrap_servers=servers, exactly_once=True)
    return open_output(sink.identity()).last_written()


def _has_committed(project: Project, batch: int) -> bool:
    return project.committed("rows") >= batch


def test_killed_at_each_point_of_a_batch_and_rebuilt(project: Project, broker: Broker, proxy: KafkaProxy) -> None:
    servers = broker.bootstrap_servers
    topic = create_topic(servers, "killed", 2)
    _pipeline(project, topic, proxy.bootstrap_servers)
    project.add_files(1)
    hold = project.folder / "hold"
    for number, point in enumerate(("before staging", *POINTS)):
        command = project.start("run", "pipeline.py")
        command.wait_for(partial(_has_committed, project, number), f"batch {number}, killed {point}")
        assert _ids(servers, topic) == list(range(number + 1)), point
        assert _written(servers, topic) == number
        if point == "before staging":
            hold.touch()
            project.add_files(1)
            command.wait_for(lambda: project.planned("rows") > project.committed("rows"), point)
            visible = False
            command.kill()
            hold.unlink()
        else:
            api, what, visible = POINTS[point]
            stop = proxy.stop_at(api, what, hold=True)
            project.add_files(1)
            command.wait_for(stop.reached.is_set, point)
            command.kill()
            stop.break_off()
        assert (project.planned("rows"), project.committed("rows")) == (number + 1, number), point
        assert _written(servers, topic) == number + visible, point
        assert _ids(servers, topic) == list(range(number + 1 + visible)), point
    project.run("--until-caught-up")
    written = len(POINTS) + 1
    assert _ids(servers, topic) == list(range(written + 1))
    assert project.committed("rows") == _written(servers, topic) == written

    # A topic cannot be cut; a rebuild that continues after its last batch is exact.
    refused = project.slackwater("plan", "rebuild", "rows", "--at", "batch:1", "--format", "json", expected=5)
    assert "sink-uncuttable" in refused.log
    shutil.rmtree(project.checkpoint("rows"))
    for arguments in (("plan", "rebuild", "rows", "--out", "plan.json"), ("apply", "plan.json", "--yes")):
        project.slackwater(*arguments)
    project.add_files(1)
    project.run("--until-caught-up")
    assert _ids(servers, topic) == list(range(written + 2))
    assert _written(servers, topic) == written + 1


@pytest.mark.thorough
def test_a_later_stage_reads_what_was_committed(project: Project, broker: Broker) -> None:
    servers = broker.bootstrap_servers
    topic = create_topic(servers, "stages", 2)
    aborted = Producer({"bootstrap.servers": servers, "transactional.id": "aborted"})
    aborted.init_transactions(30)
    aborted.begin_transaction()
    aborted.produce(topic, b'{"id": 99}')
    aborted.flush()
    aborted.abort_transaction()
    _pipeline(project, topic, servers, later=True)
    project.add_files(3)
    project.run("--until-caught-up")
    assert _ids(servers, topic) == project.ids("out") == [0, 1, 2]
    assert _ids(servers, topic, "read_uncommitted") == [0, 1, 2, 99]


@pytest.mark.thorough
def test_sparks_own_sink_loses_nothing_and_doubles_what_was_interrupted(
    project: Project, broker: Broker, proxy: KafkaProxy
) -> None:
    servers = broker.bootstrap_servers
    topic = create_topic(servers, "doubled", 2)
    _pipeline(project, topic, proxy.bootstrap_servers, exactly_once=False)
    project.add_files(1)
    command = project.start("run", "pipeline.py")
    command.wait_for(partial(_has_committed, project, 0), "batch 0")
    stop = proxy.stop_at(PRODUCE, "reply", hold=True)
    project.add_files(1)
    command.wait_for(stop.reached.is_set, "the rows of batch 1")
    command.kill()
    stop.break_off()
    assert _ids(servers, topic) == [0, 1]
    assert project.committed("rows") == 0
    project.run("--until-caught-up")
    assert _ids(servers, topic) == [0, 1, 1]
