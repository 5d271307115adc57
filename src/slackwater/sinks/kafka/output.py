"""A topic's content: unknown for at-least-once, otherwise as in its marker topic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from slackwater.core.checkpoint import Damage
from slackwater.core.errors import SinkUnreadable
from slackwater.core.sink import CatalogueEntry, Delivery
from slackwater.sinks.common.contract import Output
from slackwater.sinks.common.mark import marked_traits
from slackwater.sinks.common.opaque_output import AppendOnlyOutput, MarkerTarget, OpaqueOutput, opaque_traits
from slackwater.sinks.kafka.address import TopicAddress
from slackwater.sinks.kafka.cluster import cluster_in
from slackwater.sinks.kafka.opened import open_topic

AT_LEAST_ONCE = opaque_traits(
    Delivery("at-least-once", "an interrupted batch is sent again as a whole, and Kafka keeps both copies of its rows"),
    one_writer=False,
    continuous=True,
    real_time=True,
)
EXACTLY_ONCE = marked_traits(
    "the rows of a batch and its number are one Kafka transaction; consumers need isolation.level=read_committed"
)
MARKER = "marker_topic"
"""The key in the identity of a sink with exactly_once=True only."""


ENTRIES = (
    CatalogueEntry("kafka", "kafka(topic, bootstrap_servers=..., exactly_once=True)", EXACTLY_ONCE, rank=60),
    CatalogueEntry("kafka", "kafka(topic, bootstrap_servers=...)", AT_LEAST_ONCE, rank=100),
)


def open_kafka_output(identity: Mapping[str, str]) -> Output:
    topic = identity.get("topic", "")
    if MARKER not in identity:
        return TopicOutput(topic)
    if not topic or not identity.get("bootstrap_servers"):
        raise SinkUnreadable(
            "sink-identity",
            "The recorded identity of the sink has no topic or no servers",
            expected='{"kind": "kafka", "topic": ..., "marker_topic": ..., "bootstrap_servers": ...}',
            found=str(dict(identity)),
        )
    return MarkedTopicOutput(TopicAddress(cluster_in(identity), topic, identity[MARKER]))


class TopicOutput(OpaqueOutput):
    def __init__(self, topic: str) -> None:
        super().__init__("kafka", AT_LEAST_ONCE, f"Kafka topic {topic}")
        self._topic = topic

    def reader_path(self) -> str:
        return self._topic


class MarkedTopicOutput(AppendOnlyOutput[MarkerTarget]):
    """Batches are transactions. Kafka cannot delete individual records, so no batch can be cut."""

    def __init__(self, address: TopicAddress) -> None:
        message = f"Kafka cannot remove single batches from the topic {address.topic}"
        super().__init__("kafka", EXACTLY_ONCE, address.location, partial(open_topic, address), message)
        self.address = address

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        written = self.last_written()
        if written < 0 or not thorough or open_topic(self.address).exists():
            return ()
        return (Damage(self.address.topic, "missing", f"rows of batches up to {written}", "no topic"),)

    @property
    def marker_locations(self) -> frozenset[str]:
        servers = (server.strip() for server in self.address.cluster.servers.split(","))
        return frozenset(f"{server} {self.address.marker}" for server in servers)

    shows_rows = True

    def may_have_rows(self, marked: int) -> bool:
        return marked >= 0 or not open_topic(self.address).is_new()

    def how_to_empty(self, marked: int) -> str:
        both = f"the topics {self.address.topic} and {self.address.marker}"
        return f"delete {both if marked >= 0 else f'the topic {self.address.topic}'} and create it again"

    def reader_path(self) -> str:
        return self.address.topic
