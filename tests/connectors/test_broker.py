"""The broker of the demo is a real one: it keeps records, has them after a restart, and exits when it is stopped."""

import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from examples.demo.broker import Broker, main
from slackwater.core.errors import EnvironmentMissing
from tests.support.errors import raises_code

pytestmark = pytest.mark.kafka
MESSAGES = [f"message {number}" for number in range(10)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker.start(tmp_path / "kafka") as running:
        yield running


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_records_come_back_even_after_a_restart_and_the_port_closes(tmp_path: Path) -> None:
    folder = tmp_path / "kafka"
    with Broker.start(folder) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})  # its requests end with it
        futures = admin.create_topics([NewTopic("tides", 3, 1)])
        futures["tides"].result(30)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number, message in enumerate(MESSAGES):
            producer.produce("tides", message.encode(), partition=number % 3)
        assert producer.flush(30) == 0
    assert not _listens(broker.port)
    assert Broker.find(folder) is None
    with Broker.start(folder, broker.port) as again:
        assert again.port == broker.port
        consumer = Consumer(
            {"bootstrap.servers": again.bootstrap_servers, "group.id": "test", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["tides"])
        try:
            records = consumer.consume(len(MESSAGES), timeout=60)
        finally:
            consumer.close()
        assert Counter((record.value() or b"").decode() for record in records) == Counter(MESSAGES)
    assert not _listens(broker.port)


def test_a_second_start_in_the_folder_finds_the_one_that_runs(broker: Broker, tmp_path: Path) -> None:
    assert Broker.start(tmp_path / "kafka").pid == broker.pid


def test_a_killed_broker_is_not_taken_for_a_running_one(broker: Broker, tmp_path: Path) -> None:
    os.kill(broker.pid, signal.SIGKILL)
    broker.stop()
    assert Broker.find(tmp_path / "kafka") is None


def test_a_taken_port_is_refused_by_name(broker: Broker, tmp_path: Path) -> None:
    with raises_code(EnvironmentMissing, "port-taken") as caught:
        Broker.start(tmp_path / "other", broker.port)
    assert str(broker.port) in str(caught.value)


def test_the_command_starts_tells_and_stops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--folder", str(tmp_path / "kafka")]
    assert main(["status", *folder]) == 4
    assert main(["up", *folder]) == 0
    servers = capsys.readouterr().out
    assert servers.startswith("127.0.0.1:")
    assert main(["status", *folder]) == 0
    assert capsys.readouterr().out == servers
    assert main(["down", *folder]) == 0
    assert main(["status", *folder]) == 4
