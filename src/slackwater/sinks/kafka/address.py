"""A topic that is written exactly once, by name."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.sinks.kafka.cluster import Cluster


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
