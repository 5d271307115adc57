"""The broker is killed while a batch is written to a topic, and started again: each row is there once."""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from examples.demo.broker import Broker
from tests.runtime.project import Project
from tests.support.kafka_proxy import END_TXN, PRODUCE, KafkaProxy, What, kafka_proxy
from tests.support.kafka_topics import create_topic, values
from tests.support.warm_jvm import attached

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
PIPELINE = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")


@pipeline.stream(sink=sw.sinks.kafka("{topic}", bootstrap_servers="{servers}", exactly_once=True))
def rows(spark):
    read = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")
    return read.select(F.to_json(F.struct("id")).alias("value"))
"""
BATCH = 5
POINTS: dict[str, tuple[int, What]] = {
    "before its rows arrive": (PRODUCE, "request"),
    "after its first rows": (PRODUCE, "reply"),
    "between its rows and its commit": (END_TXN, "request"),
    "after its commit": (END_TXN, "reply"),
}
"""Where the task is while its broker is killed: the request that is held, or whose reply is."""


class CrashingBroker:
    """A broker that no other test uses. It is started again in its folder and at its port, behind a proxy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.running = Broker.start(folder)

    def crash(self) -> None:
        """End it by kill -9, and start it again."""
        port = self.running.port
        os.kill(self.running.pid, signal.SIGKILL)
        self.running.stop()
        self.running = Broker.start(self._folder, port)


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashingBroker]:
    broker = CrashingBroker(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.running.stop()


@pytest.fixture
def proxy(broker: CrashingBroker) -> Iterator[KafkaProxy]:
    with kafka_proxy(broker.running.port) as proxy:
        yield proxy


def _ids(servers: str, topic: str) -> list[int]:
    return sorted(json.loads(value or b"")["id"] for value in values(servers, topic))


def _has_committed(project: Project, batch: int) -> bool:
    return project.committed("rows") >= batch


@pytest.mark.thorough
def test_the_broker_is_killed_at_each_point_of_a_task(
    project: Project, broker: CrashingBroker, proxy: KafkaProxy
) -> None:
    servers = broker.running.bootstrap_servers
    topic = create_topic(servers, "crashed", 2)
    project.write(PIPELINE.format(topic=topic, servers=proxy.bootstrap_servers))
    project.add_file(BATCH)
    command = project.start("run", "pipeline.py", environment=attached(project.folder))
    command.wait_for(partial(_has_committed, project, 0), "batch 0")
    for batch, (point, (api, what)) in enumerate(POINTS.items(), start=1):
        stop = proxy.stop_at(api, what, hold=True)
        project.add_file(BATCH)
        command.wait_for(stop.reached.is_set, point)
        broker.crash()
        stop.break_off()
        command.wait_for(partial(_has_committed, project, batch), f"batch {batch}, whose broker was killed {point}")
        assert _ids(servers, topic) == list(range(BATCH * (batch + 1))), point
    command.signal_group(signal.SIGINT)
    assert command.end() == 0, command.log
    project.run("--until-caught-up")
    assert _ids(servers, topic) == list(range(BATCH * (len(POINTS) + 1)))
