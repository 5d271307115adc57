"""Opens a topic; imports Kafka's client, an extra, lazily."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from slackwater.core.errors import EnvironmentMissing
from slackwater.sinks.kafka.address import TopicAddress

if TYPE_CHECKING:
    from slackwater.sinks.kafka.marked import MarkedTopic


def open_topic(address: TopicAddress) -> MarkedTopic:
    if not has_client():
        raise EnvironmentMissing(
            "extra-missing", "An exactly-once Kafka sink needs confluent-kafka", where=address.location,
            hint="pip install confluent-kafka",
        )  # fmt: skip
    from slackwater.sinks.kafka.marked import MarkedTopic  # noqa: PLC0415 - imports confluent_kafka, an extra

    return MarkedTopic(address.cluster, address.topic, address.marker)


def has_client() -> bool:
    return find_spec("confluent_kafka") is not None
