from __future__ import annotations

from dataclasses import dataclass

from slackwater.sinks.kafka.cluster import Cluster


@dataclass(frozen=True)
class TopicAddress:
    cluster: Cluster
    topic: str
    marker: str

    @property
    def location(self) -> str:
        return f"{self.cluster.servers} {self.topic} (marker {self.marker})"
