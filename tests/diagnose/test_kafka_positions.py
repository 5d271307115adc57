"""Positions of a Kafka source, compared with a real broker."""

import json
import socket
import time
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from examples.demo.broker import Broker
from slackwater.core.errors import EnvironmentMissing
from slackwater.core.program import SourceShape
from slackwater.sources import kind_named
from slackwater.sources.common.contract import Asked, Uncounted
from slackwater.sources.kafka.live import known_ids
from tests.support.kafka_topics import create_topic
from tests.support.processes import accepted

pytestmark = pytest.mark.kafka

REMOVED, END = 3, 5


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker.start(tmp_path_factory.mktemp("broker")) as broker:
        servers = broker.bootstrap_servers
        create_topic(servers, "orders", 2)
        producer = Producer({"bootstrap.servers": servers, "log_level": 0})
        for number in range(END):
            producer.produce("orders", str(number), partition=0)
        producer.flush()
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        for removed in admin.delete_records([TopicPartition("orders", 0, REMOVED)]).values():
            removed.result()
        yield servers


def _problems(
    servers: str,
    positions: dict[str, dict[str, int]],
    end: dict[str, dict[str, int]] | None = None,
    start_ms: int | None = None,
    ids: Mapping[str, str] | None = None,
) -> object:
    planned = None if end is None else json.dumps(end)
    asked = Asked(json.dumps(positions), planned, start_ms, ids or {})
    found = kind_named("kafka").live().unserved(shape_of(servers), asked)
    return [(one.problem, one.place, one.records) for one in found]


def shape_of(servers: str) -> SourceShape:
    return SourceShape("kafka", "topics orders", options={"kafka.bootstrap.servers": servers})


def test_what_the_broker_has_is_no_problem(servers: str) -> None:
    assert _problems(servers, {"orders": {"0": REMOVED, "1": 0}}) == []
    assert _problems(servers, {"orders": {"0": END, "1": 0}}) == []


def test_records_that_were_removed_are_counted(servers: str) -> None:
    assert _problems(servers, {"orders": {"0": 1, "1": 0}}) == [("records-expired", "orders-0", REMOVED - 1)]


def test_a_position_after_the_end_is_found_in_a_planned_batch_too(servers: str) -> None:
    assert _problems(servers, {"orders": {"0": END + 1, "1": 0}}) == [("behind-position", "orders-0", 1)]
    planned = _problems(servers, {"orders": {"0": END, "1": 0}}, {"orders": {"0": END, "1": 1}})
    assert planned == [("behind-position", "orders-1", 1)]


def test_partitions_that_are_gone_or_not_subscribed(servers: str) -> None:
    create_topic(servers, "old")
    found = _problems(servers, {"orders": {"0": END, "1": 0, "2": 7}, "old": {"0": 0}})
    assert found == [("partitions-gone", "old-0", 0), ("partitions-gone", "orders-2", 0)]


def test_a_partition_without_a_position_that_has_lost_records(servers: str) -> None:
    assert _problems(servers, {"orders": {"1": 0}}) == [("partition-added", "orders-0", REMOVED)]


def test_a_topic_whose_records_are_newer_than_the_batch_that_ended_after_them(servers: str) -> None:
    now_ms = int(time.time() * 1000)
    positions = {"orders": {"0": END, "1": 0}}
    assert _problems(servers, positions, start_ms=now_ms) == []
    assert _problems(servers, positions, start_ms=now_ms - 3_600_000) == [
        ("topic-recreated", "orders-0", END - REMOVED)
    ]
    assert _problems(servers, {"orders": {"0": REMOVED, "1": 0}}, start_ms=now_ms - 3_600_000) == []


def test_a_topic_is_known_by_its_id_whatever_the_times_of_its_records_are(servers: str) -> None:
    live, hour_ago_ms = kind_named("kafka").live(), int(time.time() * 1000) - 3_600_000
    ids = live.ids(shape_of(servers), None)
    assert list(ids) == ["orders"]
    read, beyond = {"orders": {"0": END, "1": 0}}, {"orders": {"0": END + 2, "1": 0}}

    assert _problems(servers, read, start_ms=hour_ago_ms, ids=ids) == []
    assert _problems(servers, beyond, start_ms=hour_ago_ms, ids=ids) == [("log-cut", "orders-0", 2)]
    found = _problems(servers, read, ids={"orders": "another id"})
    assert found == [("topic-recreated", "orders-0", END - REMOVED), ("topic-recreated", "orders-1", 0)]


def test_both_clients_name_a_topic_by_the_same_id() -> None:
    of_librdkafka, of_java = "k+rvQ/PLTAmYYnS8nuR9Kg", "k-rvQ_PLTAmYYnS8nuR9Kg"
    assert known_ids({"orders": of_librdkafka}) == known_ids({"orders": of_java}) == {"orders": of_java}
    assert known_ids({"old": "A" * 22}) == {}


def test_without_an_id_records_as_old_as_the_batch_show_that_the_log_was_cut(servers: str) -> None:
    now_ms, beyond = int(time.time() * 1000), {"orders": {"0": END + 2, "1": 0}}

    assert _problems(servers, beyond, start_ms=now_ms) == [("log-cut", "orders-0", 2)]
    assert _problems(servers, beyond, start_ms=now_ms - 3_600_000) == [("topic-recreated", "orders-0", END - REMOVED)]


def test_a_broker_that_does_not_answer_is_asked_once() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        servers, connections = f"127.0.0.1:{listening.getsockname()[1]}", []
        for _ in range(2):
            with pytest.raises(EnvironmentMissing, match="Cannot read offsets"):
                _problems(servers, {"orders": {"0": 0}})
            connections.append(accepted(listening))

    assert connections[0] > 0
    assert connections[1] == 0


def test_brokers_that_do_not_answer_or_need_credentials() -> None:
    with pytest.raises(EnvironmentMissing, match="Cannot read offsets"):
        _problems("127.0.0.1:1", {"orders": {"0": 0}})
    shape = SourceShape(
        "kafka",
        "topics orders",
        options={"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.security.protocol": "SASL_SSL"},
    )
    with pytest.raises(EnvironmentMissing, match="credentials are not recorded"):
        kind_named("kafka").live().unserved(shape, Asked('{"orders":{"0":0}}'))


def test_what_the_broker_has_beyond_a_position_is_counted(servers: str) -> None:
    live = kind_named("kafka").live()

    def rows(**partitions: int) -> int | None:
        end = json.dumps({"orders": {name.removeprefix("p"): at for name, at in partitions.items()}})
        return live.ahead(end, (), servers, 10).rows

    assert rows(p0=END, p1=0) == 0
    assert rows(p0=END - 1) == 1
    assert rows(p0=1, p1=0) == END - REMOVED
    with pytest.raises(Uncounted, match="brokers"):
        live.ahead('{"orders":{"0":1}}', (), None, 10)
