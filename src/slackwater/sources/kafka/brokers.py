"""What brokers have now, asked by the client that needs no JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    settings: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0, "error_cb": lambda _: None}
    admin: Any = AdminClient(settings)
    try:
        known = admin.list_topics(timeout=WAIT_S_MAX).topics
        partitions = [
            TopicPartition(topic, one) for topic in topics if topic in known for one in known[topic].partitions
        ]
        if not partitions:
            return {}
        oldest, ends = (
            admin.list_offsets({one: spec() for one in partitions}, request_timeout=WAIT_S_MAX) for spec in _SPECS
        )
        return {
            (one.topic, one.partition): (int(oldest[one].result().offset), int(ends[one].result().offset))
            for one in partitions
        }
    except KafkaException as error:
        raise EnvironmentMissing(
            "kafka-unreachable",
            f"Cannot read offsets from the Kafka brokers: {error.args[0].str()}",
            where=servers,
            hint="start the brokers, or check kafka.bootstrap.servers of the source",
        ) from error
