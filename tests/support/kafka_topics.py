"""Topics for tests: made, and read as a consumer that sees committed records only."""

from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

WAIT_S = 30
UNDECIDED_S_MAX = 3
"""How long a reader waits for an open transaction: a commit is answered before its records may be read."""


@dataclass(frozen=True, order=True)
class Record:
    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


def create_topic(servers: str, name: str, partitions: int = 1, **config: str) -> str:
    """Create a topic; its name. Underscores in names of settings are dots."""
    settings = {setting.replace("_", "."): value for setting, value in config.items()}
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(WAIT_S)
    return name


def records(servers: str, topic: str, isolation: str = "read_committed") -> list[Record]:
    settings = {"bootstrap.servers": servers, "group.id": "test", "isolation.level": isolation}
    consumer = Consumer({**settings, "enable.partition.eof": True, "fetch.wait.max.ms": 10})
    partitions = consumer.list_topics(topic, WAIT_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: list[Record] = []
    ended: set[int | None] = set()
    undecided: set[int | None] = set()
    try:
        while len(ended) < len(partitions):
            message = consumer.poll(UNDECIDED_S_MAX if undecided else WAIT_S)
            if message is None:
                assert ended | undecided == set(partitions), f"the end of {topic} was not reached"
                break
            error = message.error()
            if error is not None:
                assert error.name() == "_PARTITION_EOF", error
                end = consumer.get_watermark_offsets(TopicPartition(topic, message.partition() or 0), cached=True)[1]
                (undecided if (message.offset() or 0) < end else ended).add(message.partition())
                continue
            headers: Any = message.headers() or ()
            found.append(Record(message.value(), message.key(), message.partition() or 0, tuple(headers)))
    finally:
        consumer.close()
    return sorted(found, key=lambda record: (record.value or b"", record.key or b""))


def values(servers: str, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
    return [record.value for record in records(servers, topic, isolation)]
