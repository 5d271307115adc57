"""Writes a batch in a Kafka transaction: rows and mark become visible together or not at all.

Runs in driver and tasks. Pickled by value: executors need only confluent-kafka and pyarrow.

``init_transactions`` comes first: it fences earlier producers of the transactional id, and returns when their
transactions have ended. So a mark read after it is the newest, and nobody can replace it before this producer's commit
without fencing it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

# Types of the client cannot be pickled by name: tasks look them up in the module.
import confluent_kafka

RESULT = "row_count LONG"
"""The schema of the task's result, one row: null if the batch was written before."""

MARK_KEY = b"slackwater"
MARK_FIELDS = {"stream_id": str, "stream": str, "home": str, "epoch": int, "batch_id": int}
LOGIN_FAILED = ("_AUTHENTICATION", "_SSL")
TIMED_OUT = -185
"""librdkafka's error ``_TIMED_OUT``."""
FENCED = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
ABORT_S_MAX = 10.0
UNDECIDED_S_MAX = 3.0
"""How long a reader waits for records that are neither committed nor aborted, which takes a broker milliseconds."""
RETRY_S = 0.2
Undecided = tuple[int, int]
"""The offsets of the first undecided record of a partition, and after its last record."""


@dataclass(frozen=True)
class TopicSettings:
    topic: str
    marker_topic: str
    producer: Mapping[str, str] = field(repr=False)
    reader: Mapping[str, str] = field(repr=False)
    wait_s_max: float = 60.0
    """The longest wait in each step that waits for the broker, except the commit of a batch."""


@dataclass(frozen=True)
class BatchToWrite:
    """A batch to write. ``fenced_s_max``: a replaced attempt waits for the other's commit.

    ``commit_s_max``: the commit is retried until its outcome is unknown.
    """

    stream_id: str
    epoch: int
    batch_id: int
    fenced_s_max: float = 30.0
    commit_s_max: float = 60.0


def publisher(settings: TopicSettings, batch: BatchToWrite) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """For ``mapInArrow`` on a single partition.

    Columns are ``KafkaWriter``'s, as binary. Errors are text that the driver can parse.
    """

    def publish(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - only tasks need it, not the driver that reads the mark

        try:
            rows = write_batch(settings, batch, batches)
        except confluent_kafka.KafkaException as error:
            raise RuntimeError(as_text(error)) from None
        yield pa.record_batch({"row_count": pa.array([rows], pa.int64())})

    return publish


def write_batch(settings: TopicSettings, batch: BatchToWrite, rows: Iterable[Any]) -> int | None:
    """Write a batch; ``None`` if it was written before.

    Always reads all rows, so that Spark's watermark and row counts are as in an uninterrupted run.
    """
    undelivered: list[Any] = []
    producer = fencing_producer(settings, undelivered)
    mark = _own_mark(settings, batch)
    if mark["batch_id"] >= batch.batch_id:
        for _ in rows:
            pass
        return None
    count = 0
    try:
        producer.begin_transaction()
        for part in rows:
            produce(producer, settings.topic, part)
            count += part.num_rows
        new = {**mark, "epoch": batch.epoch, "batch_id": batch.batch_id}
        commit(producer, settings.marker_topic, new, batch.commit_s_max)
    except confluent_kafka.KafkaException as raised:
        error = abort(producer) or raised
        deadline = time.monotonic() + batch.fenced_s_max
        # The attempt that replaced this one may write the same batch: Spark may rerun a slow attempt.
        while error.args[0].name() in FENCED and time.monotonic() < deadline:
            if _own_mark(settings, batch)["batch_id"] >= batch.batch_id:
                return None
            time.sleep(RETRY_S)
        if error.args[0].name() == "_INCONSISTENT" and undelivered:
            # Rows that the broker refused; the first of them shows why.
            raise confluent_kafka.KafkaException(undelivered[0]) from None
        raise error from None
    except BaseException:
        abort(producer)
        raise
    return count


def fencing_producer(settings: TopicSettings, undelivered: list[Any] | None = None) -> Any:
    """A producer that fences all earlier producers. Broker errors of rows are added to ``undelivered``."""
    failed = [] if undelivered is None else undelivered
    reports = {"delivery.report.only.error": True, "on_delivery": lambda error, _: failed.append(error)}
    producer = confluent_kafka.Producer({**settings.producer, **reports, "logger": _silent()})
    producer.init_transactions(settings.wait_s_max)
    return producer


def commit(producer: Any, marker_topic: str, mark: Mapping[str, Any], wait_s_max: float) -> None:
    """Commit with the mark. Raises KafkaException; the outcome may then be unknown."""
    # One key and one partition: compaction keeps the newest mark, and marks are in the order of their commits.
    producer.produce(marker_topic, json.dumps(dict(mark)).encode(), MARK_KEY, 0)
    deadline = time.monotonic() + wait_s_max
    while True:
        try:
            producer.commit_transaction(max(deadline - time.monotonic(), RETRY_S))
        except confluent_kafka.KafkaException as error:
            # librdkafka may continue a commit that timed out in the background, and allows the call to be repeated.
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
        else:
            return


def abort(producer: Any) -> Any:
    """Abort, so that readers need not wait for the timeout; otherwise the next producer does.

    Returns the client's fatal error, such as its fence, if any: afterwards ``produce`` only reports ``_FATAL``.
    """
    with suppress(Exception):
        try:
            producer.purge()
            producer.abort_transaction(ABORT_S_MAX)
        except confluent_kafka.KafkaException as error:
            return error if error.args[0].fatal() else None
    return None


def produce(producer: Any, topic: str, rows: Any) -> None:
    columns = {name: rows.column(name).to_pylist() for name in rows.schema.names}
    nothing: list[None] = [None] * rows.num_rows
    used = [columns["value"], columns.get("key", nothing)]
    if "headers" in columns or "partition" in columns:
        partitions, headers = columns.get("partition", nothing), columns.get("headers", nothing)
        refused = next((one for one in partitions if one is not None and one < 0), None)
        if refused is not None:
            # As Spark's sink does (``ProducerRecord``): the client takes -1 for a partition of its own choice.
            raise RuntimeError(f"[slackwater kafka-partition] partition {refused}")
        # librdkafka's RD_KAFKA_PARTITION_UA, by which the partitioner chooses.
        used += [[-1 if one is None else one for one in partitions]]
        used += [[[(header["key"], header["value"]) for header in one or ()] for one in headers]]

    def send_with_headers(topic: str, value: Any, key: Any, partition: int, headers: Any) -> None:
        producer.produce(topic, value, key, partition, headers=headers)

    send: Callable[..., None] = producer.produce if len(used) == len(("value", "key")) else send_with_headers
    for row in zip(*used, strict=True):
        while True:
            try:
                send(topic, *row)
                break
            except BufferError:
                producer.poll(0.05)
    # Reports of what was delivered count as queued messages until they are taken here.
    producer.poll(0)


def read_mark(
    settings: TopicSettings, wait_s_max: float | None = None, waited_for: dict[str, Undecided] | None = None
) -> dict[str, Any] | None:
    """The newest mark. Raises KafkaException, or ValueError if malformed.

    ``waited_for`` are records that earlier reads waited for in vain; they are not waited for again.
    """
    errors: list[Any] = []
    consumer = confluent_kafka.Consumer({**settings.reader, "error_cb": errors.append, "logger": _silent()})
    try:
        waits = {} if waited_for is None else waited_for
        value = _newest_value(consumer, settings.marker_topic, wait_s_max or settings.wait_s_max, waits)
        if value is None:
            return None
        mark = json.loads(value)
        if not isinstance(mark, dict) or any(not isinstance(mark.get(key), kind) for key, kind in MARK_FIELDS.items()):
            raise ValueError(f"no mark: {value[:80]!r}")
        return {name: mark[name] for name in MARK_FIELDS}
    except confluent_kafka.KafkaException:
        # A refused login looks like a timeout; the client reports it by its callback.
        consumer.poll(0)
        refused = [error for error in errors if error.name() in LOGIN_FAILED]
        if refused:
            raise confluent_kafka.KafkaException(refused[-1]) from None
        raise
    finally:
        consumer.close()


def _newest_value(consumer: Any, topic: str, wait_s: float, waited_for: dict[str, Undecided]) -> bytes | None:
    known = consumer.list_topics(topic, wait_s).topics[topic]
    if known.error is not None:
        if known.error.code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise confluent_kafka.KafkaException(known.error)
    low, high = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), wait_s)
    # From the end backwards: until the broker compacts the topic, it has a mark for each batch.
    span = 20
    while True:
        start = max(low, high - span)
        begin = confluent_kafka.TopicPartition(topic, 0, start)
        value = _last_value(consumer, begin, time.monotonic() + wait_s, waited_for)
        if value is not None or start == low:
            return value
        # Aborted transactions and the control records of all use offsets, too.
        span *= 20


def _last_value(consumer: Any, start: Any, deadline: float, waited_for: dict[str, Undecided]) -> bytes | None:
    """The last committed mark from an offset.

    ``commit_transaction`` returns when the coordinator has recorded the commit, before partitions get its markers. So
    the reader waits briefly until later records are decided: a writer killed before its commit leaves them undecided
    for minutes.
    """
    consumer.assign([start])
    found: bytes | None = None
    waits_for: Undecided | None = None
    while True:
        message = consumer.poll(max(deadline - time.monotonic(), 0))
        if message is None:
            if waits_for is not None:
                waited_for[start.topic] = waits_for
                return found
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(TIMED_OUT))
        if message.error() is None:
            found = message.value() if message.key() == MARK_KEY else found
        elif message.error().name() == "_PARTITION_EOF":
            # The client keeps the high watermark of its last fetch; a reader of committed records ends before it.
            there = (message.offset(), consumer.get_watermark_offsets(start, cached=True)[1])
            if there[0] >= there[1] or waited_for.get(start.topic) == there:
                return found
            if waits_for is None:
                waits_for, deadline = there, min(deadline, time.monotonic() + UNDECIDED_S_MAX)
        elif message.error().name() != "GROUP_AUTHORIZATION_FAILED" and not message.error().retriable():
            # The reader has a group, because every consumer has one, and uses nothing of it.
            raise confluent_kafka.KafkaException(message.error())


def _own_mark(settings: TopicSettings, batch: BatchToWrite) -> dict[str, Any]:
    try:
        mark = read_mark(settings)
    except ValueError:
        raise RuntimeError("[slackwater kafka-mark-malformed] no mark") from None
    if mark is None or mark["stream_id"] != batch.stream_id:
        raise RuntimeError(f"[slackwater sink-owned] stream {mark['stream'] if mark else 'unknown'}")
    if mark["epoch"] > batch.epoch:
        raise RuntimeError(f"[slackwater sink-fenced] epoch {mark['epoch']}")
    return mark


def _silent() -> logging.Logger:
    """A logger that keeps the client's log off stderr: Slackwater's error reports it once."""
    logger = logging.getLogger("slackwater.librdkafka")
    logger.disabled = True
    return logger


def as_text(error: Any) -> str:
    """An error as text: only text passes from executor to driver."""
    return f"[slackwater kafka] {error.args[0].name()}: {error.args[0].str()}"
