"""Transactions of the exactly-once Kafka sink on a real broker, without Spark: fences, lost replies, marks, logins."""

import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

import slackwater as sw
from slackwater.core.errors import PipelineError, Refused, SinkUnreadable, StreamFailed
from slackwater.core.sink import Owner, WriteContext
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.kafka import transaction
from slackwater.sinks.kafka.marked import MarkedTopic, create_marker
from slackwater.sinks.kafka.sink import MarkedTopicOutput
from slackwater.sinks.kafka.transaction import MARK_KEY, BatchToWrite, write_batch
from tests.support.errors import raises_code
from tests.support.kafka_login import PASSWORD, GuardedBroker, guarded_broker
from tests.support.kafka_proxy import END_TXN, KafkaProxy, What, kafka_proxy
from tests.support.kafka_topics import Record, create_topic, records, values

pytestmark = pytest.mark.kafka
CONTEXT = WriteContext("5f0e", "clicks/orders", 3, "append")
OWNER = Owner(CONTEXT.stream_id, CONTEXT.stream, "/srv/home")
FROM_VARIABLE = "env:KAFKA_PASSWORD"
NAMES = (f"topic-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    with guarded_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def servers(broker: GuardedBroker) -> str:
    return broker.servers


@pytest.fixture
def topic(servers: str) -> str:
    return create_topic(servers, next(NAMES), 3)


@pytest.fixture
def proxy(servers: str) -> Iterator[KafkaProxy]:
    with kafka_proxy(int(servers.rpartition(":")[2])) as proxy:
        yield proxy


def _sink(servers: str, topic: str, **options: Any) -> Any:
    return sw.sinks.kafka(topic, bootstrap_servers=servers, exactly_once=True, **options)


def _started(servers: str, topic: str, context: WriteContext = CONTEXT) -> MarkedTopic:
    """The topic as it is when a run has claimed it and has refused earlier ones."""
    marked: MarkedTopic = _sink(servers, topic).target
    marked.claim(replace(OWNER, stream_id=context.stream_id))
    marked.begin_epoch(context)
    return marked


def _batch(number: int, epoch: int = CONTEXT.epoch) -> BatchToWrite:
    return BatchToWrite(CONTEXT.stream_id, epoch, number, fenced_s_max=10)


def _rows(*rows: bytes | None) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(rows, pa.binary())})


def test_rows_are_written_as_they_are(servers: str, topic: str) -> None:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = pa.record_batch(
        {
            "value": pa.array([b"a", None, b"", b"d"], pa.binary()),
            "key": pa.array([b"21", b"k", None, None], pa.binary()),
            "partition": pa.array([None, 1, 2, 0], pa.int32()),
            "headers": pa.array([None, [{"key": "h", "value": None}, {"key": "h", "value": b"2"}], [], None], headers),
        }
    )
    marked = _started(servers, topic)

    assert write_batch(marked.settings, _batch(0), [rows]) == 4

    # Java's clients send the key 21 to (murmur2 & 0x7fffffff) % 3; Kafka's own test has the hash.
    assert records(servers, topic) == sorted(
        [
            Record(b"a", b"21", (-973932308 & 0x7FFFFFFF) % 3),
            Record(None, b"k", 1, (("h", None), ("h", b"2"))),
            Record(b"", None, 2),
            Record(b"d", None, 0),
        ],
        key=lambda record: (record.value or b"", record.key or b""),
    )
    for partition, code in ((-3, "kafka-partition"), (7, "UNKNOWN_PARTITION")):
        wrong = rows.set_column(2, "partition", pa.array([partition] * 4, pa.int32()))
        with pytest.raises(RuntimeError, match=code):
            list(transaction.publisher(marked.settings, _batch(1))([wrong]))
    assert len(records(servers, topic)) == 4
    assert marked.last_written() == 0


def test_a_batch_is_written_once_and_all_or_nothing(servers: str, topic: str) -> None:
    marked = _started(servers, topic)

    def broken() -> Iterator[pa.RecordBatch]:
        yield _rows(b"a")
        raise ValueError("a task fails in its last rows")

    with pytest.raises(ValueError, match="last rows"):
        write_batch(marked.settings, _batch(0), broken())
    assert values(servers, topic) == []
    assert marked.last_written() == -1
    for _ in range(2):
        unread = iter([_rows(b"a"), _rows(b"b")])
        write_batch(marked.settings, _batch(0), unread)
        assert next(unread, None) is None, "the rows of a known batch are read all the same"
        assert values(servers, topic) == [b"a", b"b"]
        assert marked.last_written() == 0
    assert write_batch(marked.settings, _batch(1), []) == 0
    assert marked.last_written() == 1
    assert len(values(servers, topic)) == 2


def test_an_older_epoch_that_wakes_late_publishes_nothing(servers: str, topic: str) -> None:
    old = _started(servers, topic)
    asleep, awake = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def rows() -> Iterator[pa.RecordBatch]:
        yield _rows(b"old")
        asleep.set()
        awake.wait(30)
        yield _rows(b"old too")

    def write_old() -> None:
        try:
            write_batch(old.settings, _batch(0), rows())
        except RuntimeError as error:
            failures.append(error)

    thread = threading.Thread(target=write_old)
    thread.start()
    assert asleep.wait(30)
    new = _started(servers, topic, replace(CONTEXT, epoch=4))
    write_batch(new.settings, _batch(0, epoch=4), [_rows(b"new")])
    awake.set()
    thread.join(30)

    assert "sink-fenced" in str(failures[0])
    with pytest.raises(RuntimeError, match="sink-fenced"):
        write_batch(old.settings, _batch(1), [_rows(b"old")])
    with raises_code(Refused, "sink-fenced"):
        old.begin_epoch(CONTEXT)
    # It was only woken: the newer run writes on.
    write_batch(new.settings, _batch(1, epoch=4), [_rows(b"newer")])
    assert values(servers, topic) == [b"new", b"newer"]
    assert new.last_written() == 1


def test_two_attempts_of_one_task_write_once(servers: str, topic: str) -> None:
    marked = _started(servers, topic)
    inside, beyond = threading.Event(), threading.Event()
    results: list[int | None] = []

    def slow() -> Iterator[pa.RecordBatch]:
        yield _rows(b"a")
        inside.set()
        beyond.wait(30)
        yield _rows(b"b")

    thread = threading.Thread(target=lambda: results.append(write_batch(marked.settings, _batch(0), slow())))
    thread.start()
    assert inside.wait(30)
    assert write_batch(marked.settings, _batch(0), [_rows(b"a", b"b")]) == 2
    beyond.set()
    thread.join(30)

    assert results == [None]
    assert values(servers, topic) == [b"a", b"b"]


def test_an_attempt_that_was_replaced_before_its_first_row(servers: str, topic: str) -> None:
    """The client learns from its first request that it was fenced, and takes no more rows: a "fatal error" to each."""
    marked = _started(servers, topic)

    def late() -> Iterator[pa.RecordBatch]:
        assert write_batch(marked.settings, _batch(0), [_rows(b"a", b"b")]) == 2
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            yield _rows(b"late")
            time.sleep(0.05)
        pytest.fail("the client takes rows for a transaction that it was told it cannot commit")

    assert write_batch(marked.settings, _batch(0), late()) is None
    assert values(servers, topic) == [b"a", b"b"]


@pytest.mark.parametrize("lost", ["request", "reply"])
def test_a_connection_lost_at_commit(lost: What, topic: str, servers: str, proxy: KafkaProxy) -> None:
    """The client sends the request again, and the coordinator knows the transaction that it has committed."""
    marked = _started(proxy.bootstrap_servers, topic)
    stop = proxy.stop_at(END_TXN, lost)
    assert write_batch(marked.settings, _batch(0), [_rows(b"a", b"b")]) == 2
    assert stop.reached.is_set()
    assert values(servers, topic) == [b"a", b"b"]
    assert marked.last_written() == 0


@pytest.mark.parametrize("lost", [pytest.param("request", marks=pytest.mark.thorough), "reply"])
def test_a_broker_lost_at_commit(lost: What, topic: str, servers: str, proxy: KafkaProxy) -> None:
    """The outcome stays unknown to the run that commits; the next one finds it by the mark.

    A client whose request was lost sends it again when the broker is back, unless the next run has fenced it before.
    """
    marked = _started(proxy.bootstrap_servers, topic)
    stop = proxy.stop_at(END_TXN, lost, hold=True)

    def fail() -> None:
        assert stop.reached.wait(30)
        proxy.set_down(down=True)
        stop.break_off()

    thread = threading.Thread(target=fail)
    thread.start()
    with pytest.raises(KafkaException):
        write_batch(marked.settings, replace(_batch(0), commit_s_max=8), [_rows(b"a", b"b")])
    thread.join(30)
    proxy.set_down(down=False)

    again = _started(proxy.bootstrap_servers, topic, replace(CONTEXT, epoch=4))
    found = again.last_written()
    assert found in ({0} if lost == "reply" else {0, -1})
    assert values(servers, topic) == ([b"a", b"b"] if found == 0 else [])
    assert write_batch(again.settings, _batch(0, epoch=4), [_rows(b"a", b"b")]) == (None if found == 0 else 2)
    assert values(servers, topic) == [b"a", b"b"]
    assert again.last_written() == 0


def test_the_mark_is_found_behind_and_before_open_and_aborted_transactions(servers: str, topic: str) -> None:
    marked = _started(servers, topic)
    write_batch(marked.settings, _batch(0), [_rows(b"a")])
    for _ in range(25):
        producer = _undecided(marked, b"aborted")
        producer.abort_transaction()
    assert marked.last_written() == 0
    _undecided(marked, b"of a writer that was killed")
    assert _mark(marked, 1.0).batch_id == 0


def test_a_commit_that_is_not_yet_readable_is_waited_for(servers: str, topic: str) -> None:
    """The coordinator answers a commit before the records of the transaction may be read."""
    marked = _started(servers, topic)
    producer = _undecided(marked, json.dumps(_mark(marked)._replace(batch_id=7)._asdict()).encode())
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(marked.last_written()))
    reader.start()
    time.sleep(1.0)
    assert not found
    producer.commit_transaction()
    reader.join(30)
    assert found == [7]


def test_a_killed_writer_is_waited_for_once(servers: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    marked = _started(servers, topic)
    producer = _undecided(marked, json.dumps(_mark(marked)._replace(batch_id=7)._asdict()).encode())
    monkeypatch.setattr(transaction, "UNDECIDED_S_MAX", 1.0)
    assert marked.last_written() == -1
    monkeypatch.setattr(transaction, "UNDECIDED_S_MAX", 3600.0)
    wait_s_max = 3600.0
    assert _mark(MarkedTopic(marked.cluster, topic, marked.marker), wait_s_max).batch_id == -1
    producer.commit_transaction()
    deadline = time.monotonic() + 30
    while _mark(marked, wait_s_max).batch_id != 7:
        assert time.monotonic() < deadline


def _undecided(marked: MarkedTopic, mark: bytes) -> Any:
    """The producer of a transaction that has written a mark and is neither committed nor aborted."""
    producer = transaction.fencing_producer(marked.settings)
    producer.begin_transaction()
    producer.produce(marked.marker, mark, MARK_KEY)
    producer.flush()
    return producer


def _mark(marked: MarkedTopic, wait_s_max: float = 10.0) -> Any:
    found = marked.mark(wait_s_max)
    assert found is not None
    return found


def test_a_lost_ledger_and_what_the_error_says_about_it(servers: str, topic: str) -> None:
    marked = _started(servers, topic)
    write_batch(marked.settings, _batch(0), [_rows(b"a")])
    first = replace(CONTEXT, epoch=1)
    with pytest.raises(Refused) as refused:
        marked.begin_epoch(first)
    hint = refused.value.hint or ""
    key, _, rest = hint.partition("the key ")[2].partition(" and the value ")
    _produce(servers, marked.marker, key, rest.partition(" to the topic ")[0])
    marked.begin_epoch(first)
    assert (_mark(marked).epoch, _mark(marked).batch_id) == (1, 0)

    _produce(servers, marked.marker, key, '{"stream_id": 5}')
    with raises_code(SinkUnreadable, "kafka-mark-malformed"):
        marked.last_written()


def _produce(servers: str, topic: str, key: str, value: str) -> None:
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, value.encode(), key.encode())
    assert producer.flush(30) == 0


def test_another_stream_is_refused_and_takes_a_marker_topic_of_its_own(servers: str, topic: str) -> None:
    marked = _started(servers, topic)
    other = Owner("0ther", "clicks/other", "/srv/other")
    with raises_code(Refused, "sink-owned"):
        marked.claim(other)
    with raises_code(Refused, "sink-owned"):
        marked.begin_epoch(replace(CONTEXT, stream_id=other.stream_id))
    write_batch(marked.settings, _batch(0), [_rows(b"a")])
    beside: MarkedTopic = _sink(servers, topic, marker_topic=f"{topic}-other").target
    beside.claim(other)
    beside.begin_epoch(replace(CONTEXT, stream_id=other.stream_id))
    write_batch(beside.settings, BatchToWrite(other.stream_id, 3, 5), [_rows(b"b")])
    assert values(servers, topic) == [b"a", b"b"]
    assert (marked.last_written(), beside.last_written()) == (0, 5)


def test_what_the_broker_does_not_allow(servers: str, topic: str) -> None:
    long: MarkedTopic = _sink(servers, topic, **{"kafka.transaction.timeout.ms": "9000000"}).target
    with raises_code(StreamFailed, "kafka-transaction-timeout"):
        long.claim(OWNER)

    odd: MarkedTopic = _sink(servers, topic, **{"kafka.compression.type": "none", "kafka.odd": "1"}).target
    with raises_code(PipelineError, "kafka-option") as unknown:
        odd.claim(OWNER)
    assert '"odd"' in str(unknown.value.found)

    create_topic(servers, f"{topic}-deleting", cleanup_policy="delete")
    deleting: MarkedTopic = _sink(servers, topic, marker_topic=f"{topic}-deleting").target
    with raises_code(PipelineError, "kafka-marker-expires"):
        deleting.check()

    marked = _started(servers, topic)
    with pytest.raises(RuntimeError, match="MSG_SIZE_TOO_LARGE"):
        list(transaction.publisher(marked.settings, _batch(0))([_rows(b"a", b"x" * 2_000_000)]))
    assert values(servers, topic) == []
    write_batch(marked.settings, _batch(0), [_rows(b"a")])
    assert MarkedTopicOutput(marked).damage("all") == ()

    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.delete_topics([topic])[topic].result(30)
    with raises_code(PipelineError, "kafka-topic"):
        marked.check()
    assert [damage.path for damage in MarkedTopicOutput(marked).damage("all")] == [topic]


def test_a_broker_that_does_not_answer() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        marked: MarkedTopic = _sink(f"127.0.0.1:{unused.getsockname()[1]}", "clicks").target
    with raises_code(SinkUnreadable, "output-broker-unreachable"):
        marked.mark(1)


LOGIN = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.username": "limited"}
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="limited" password="{PASSWORD}";'


def test_logins_and_permissions(
    servers: str, topic: str, broker: GuardedBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    guarded = broker.guarded
    sink = _sink(guarded, topic, password=FROM_VARIABLE, **LOGIN)
    shown = repr(sink) + json.dumps(dict(sink.identity()))
    for password, code in (("", "output-password-missing"), ("wrong", "output-kafka-login")):
        monkeypatch.setenv("KAFKA_PASSWORD", password)
        with raises_code(SinkUnreadable, code) as refused:
            open_output(sink.identity()).last_written()
        shown += str(refused.value)
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)

    marker = sink.target.marker
    for allowed, code in (
        ((), "kafka-privilege"),
        (((ResourceType.TOPIC, marker, AclOperation.DESCRIBE),), "sink-grant"),
        (((ResourceType.TOPIC, marker, AclOperation.CREATE),), "kafka-privilege"),
        (((ResourceType.TOPIC, marker, AclOperation.READ),), "kafka-privilege"),
    ):
        _allow(servers, allowed)
        with pytest.raises((StreamFailed, Refused)) as lacks:
            sink.target.claim(OWNER)
        assert lacks.value.code == code, allowed
        shown += str(lacks.value)
    _allow(servers, [(ResourceType.TRANSACTIONAL_ID, "slackwater-", AclOperation.WRITE)])
    _allow(servers, [(ResourceType.TOPIC, marker, AclOperation.WRITE)])
    _allow(servers, [(ResourceType.TOPIC, topic, AclOperation.DESCRIBE)])
    sink.target.claim(OWNER)
    with raises_code(Refused, "sink-grant", expected=f"WRITE on topic {topic}"):
        sink.target.check()
    _allow(servers, [(ResourceType.TOPIC, topic, AclOperation.WRITE)])
    sink.target.check()
    sink.target.begin_epoch(CONTEXT)
    write_batch(sink.target.settings, _batch(0), [_rows(b"a")])
    assert open_output(sink.identity()).last_written() == 0

    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    plain = {name: value for name, value in LOGIN.items() if "username" not in name}
    for other in (
        _sink(guarded, topic, password=f"file:{tmp_path}/secret", **LOGIN),
        _sink(guarded, topic, **plain, **{"kafka.sasl.jaas.config": JAAS}),
    ):
        assert open_output(other.identity()).last_written() == 0
        shown += repr(other) + repr(other.target.settings) + json.dumps(dict(other.identity()))
    assert PASSWORD not in shown


def test_a_marker_topic_that_exists_needs_no_right_to_create_it(
    servers: str, topic: str, broker: GuardedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    target = _sink(broker.guarded, topic, password=FROM_VARIABLE, **LOGIN).target
    create_marker(_sink(servers, topic).target.cluster, target.marker)
    _allow(servers, [(ResourceType.TOPIC, target.marker, right) for right in (AclOperation.READ, AclOperation.WRITE)])
    _allow(servers, [(ResourceType.TRANSACTIONAL_ID, "slackwater-", AclOperation.WRITE)])

    target.claim(OWNER)

    assert target.owner() == OWNER


def _allow(servers: str, allowed: Any) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for kind, name, operation in allowed:
        pattern = ResourcePatternType.PREFIXED if kind == ResourceType.TRANSACTIONAL_ID else ResourcePatternType.LITERAL
        rule = AclBinding(kind, name, pattern, "User:limited", "*", operation, AclPermissionType.ALLOW)
        admin.create_acls([rule])[rule].result(30)
