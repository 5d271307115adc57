"""A topic that is written exactly once, by name. Kafka's client, an extra, is imported when the topic is opened."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from slackwater.core.errors import EnvironmentMissing
from slackwater.sinks.kafka.cluster import Cluster

if TYPE_CHECKING:
    from slackwater.sinks.kafka.marked import MarkedTopic


@dataclass(frozen=True)
class TopicAddress:
    """A topic and the topic of its marks."""

    cluster: Cluster
    topic: str
    marker: str

    @property
    def location(self) -> str:
        """Servers, topic, and the marker topic."""
        return f"{self.cluster.servers} {self.topic} (marker {self.marker})"

    def open(self) -> MarkedTopic:
        """The topic as the client reads and writes it. Raises EnvironmentMissing (``extra-missing``)."""
        if not has_client():
            raise EnvironmentMissing(
                "extra-missing", "An exactly-once Kafka sink needs confluent-kafka", where=self.location,
                hint="pip install 'slackwater[kafka]'",
            )  # fmt: skip
        from slackwater.sinks.kafka.marked import MarkedTopic  # noqa: PLC0415 - imports confluent_kafka, an extra

        return MarkedTopic(self.cluster, self.topic, self.marker)


def has_client() -> bool:
    """Whether confluent-kafka is installed."""
    return find_spec("confluent_kafka") is not None
