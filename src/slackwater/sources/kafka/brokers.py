"""What brokers have now, asked by the client that needs no JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from slackwater.core.errors import EnvironmentMissing
from slackwater.sources.kafka import Partition

WAIT_S_MAX = 5.0
_SPECS: tuple[Any, ...] = (OffsetSpec.earliest, OffsetSpec.latest)


def held(servers: str, topics: Iterable[str]) -> Mapping[Partition, tuple[int, int]]:
    """The oldest offset and the end of each partition of those topics that exist.

    Raises EnvironmentMissing (``kafka-unreachable``).
    """
    with _asked(servers) as admin:
        known = admin.list_topics(timeout=WAIT_S_MAX).topics
        partitions = [
            TopicPartition(topic, one) for topic in topics if topic in known for one in known[topic].partitions
        ]
        if not partitions:
            return {}
        oldest, ends = (_offsets(admin, {one: spec() for one in partitions}) for spec in _SPECS)
        return {one: (oldest[one], ends[one]) for one in oldest}


def first_since(servers: str, partitions: Iterable[Partition], time_ms: int) -> Mapping[Partition, int]:
    """Of each partition the offset of its first record of that time or later, -1 where there is none.

    Raises EnvironmentMissing (``kafka-unreachable``).
    """
    with _asked(servers) as admin:
        return _offsets(admin, {TopicPartition(*one): OffsetSpec.for_timestamp(time_ms) for one in partitions})


def _offsets(admin: Any, wanted: Mapping[TopicPartition, Any]) -> dict[Partition, int]:
    found = admin.list_offsets(dict(wanted), request_timeout=WAIT_S_MAX)
    return {(one.topic, one.partition): int(answer.result().offset) for one, answer in found.items()}


@contextmanager
def _asked(servers: str) -> Iterator[Any]:
    # librdkafka would write each failed connection to stderr; the calls report it by an exception.
    settings: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0, "error_cb": lambda _: None}
    try:
        yield AdminClient(settings)
    except KafkaException as error:
        raise EnvironmentMissing(
            "kafka-unreachable",
            f"Cannot read offsets from the Kafka brokers: {error.args[0].str()}",
            where=servers,
            hint="start the brokers, or check kafka.bootstrap.servers of the source",
        ) from error
