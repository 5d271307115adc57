"""Asks brokers through a client without a JVM."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from slackwater.core.errors import EnvironmentMissing
from slackwater.sources.kafka import Partition
from slackwater.sources.kafka.live import Topics, known_ids

ANSWER_S_MAX = 1.8
"""The time for all questions about a source: shorter than a start waits, so that the brokers' own reason is shown."""
SILENT_S = 5.0
"""Silent brokers are not asked again for this long: other sources would wait for them, too."""
_SPECS: tuple[Any, ...] = (OffsetSpec.earliest, OffsetSpec.latest)
_silent_until: dict[str, float] = {}


class Brokers:
    """The brokers of a source, until ``ANSWER_S_MAX`` have passed."""

    def __init__(self, servers: str) -> None:
        # librdkafka would write each failed connection to stderr; the calls report it by an exception.
        settings: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0, "error_cb": lambda _: None}
        self._admin: Any = AdminClient(settings)
        self._until = time.monotonic() + ANSWER_S_MAX

    def topics(self, names: Iterable[str]) -> Topics:
        found = self._described(names)
        partitions = [TopicPartition(name, one.id) for name, topic in found.items() for one in topic.partitions]
        # Both are asked for before either is waited for.
        asked = [self._ask({one: spec() for one in partitions}) for spec in _SPECS] if partitions else [{}, {}]
        oldest, ends = (_offsets(answers) for answers in asked)
        return {one: (oldest[one], ends[one]) for one in oldest}, _ids(found)

    def ids(self, names: Iterable[str]) -> Mapping[str, str]:
        return _ids(self._described(names))

    def first_since(self, partitions: Iterable[Partition], time_ms: int) -> Mapping[Partition, int]:
        return _offsets(self._ask({TopicPartition(*one): OffsetSpec.for_timestamp(time_ms) for one in partitions}))

    def _described(self, names: Iterable[str]) -> Mapping[str, Any]:
        wanted = sorted(names)
        if not wanted:
            return {}
        answers = self._admin.describe_topics(TopicCollection(wanted), request_timeout=self._left_s())
        found = {}
        for name, answer in answers.items():
            try:
                found[name] = answer.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        return found

    def _ask(self, wanted: Mapping[TopicPartition, Any]) -> Mapping[TopicPartition, Any]:
        found: Mapping[TopicPartition, Any] = self._admin.list_offsets(dict(wanted), request_timeout=self._left_s())
        return found

    def _left_s(self) -> float:
        return max(self._until - time.monotonic(), 0.001)


def _offsets(answers: Mapping[TopicPartition, Any]) -> dict[Partition, int]:
    return {(one.topic, one.partition): int(answer.result().offset) for one, answer in answers.items()}


def _ids(described: Mapping[str, Any]) -> Mapping[str, str]:
    return known_ids({name: str(topic.topic_id) for name, topic in described.items()})


@contextmanager
def asked(servers: str) -> Iterator[Brokers]:
    """Raises EnvironmentMissing (``kafka-unreachable``) if the brokers do not answer in time."""
    if time.monotonic() < _silent_until.get(servers, 0.0):
        raise _unreachable(servers, "they did not answer a moment ago")
    try:
        yield Brokers(servers)
    except KafkaException as error:
        _silent_until[servers] = time.monotonic() + SILENT_S
        raise _unreachable(servers, error.args[0].str()) from error


def _unreachable(servers: str, reason: str) -> EnvironmentMissing:
    return EnvironmentMissing(
        "kafka-unreachable",
        f"Cannot read offsets from the Kafka brokers: {reason}",
        where=servers,
        hint="start the brokers, or check kafka.bootstrap.servers of the source",
    )
