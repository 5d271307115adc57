"""The same clicks in a real Kafka topic with three partitions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.restart.scenario import ROWS_A_BATCH, SCHEMA, readings
from tests.support.kafka_topics import records

PARTITIONS = 3
KEYS = 2
SKEW = (0, 0, 0, 1, 1, 2)


class KafkaClicks:
    """All rows are there from the start, unevenly spread; ``maxOffsetsPerTrigger`` makes the batches."""

    def __init__(self, bootstrap_servers: str, topic: str, **options: str) -> None:
        """``options`` are more options of the source."""
        self._servers = bootstrap_servers
        self._topic = topic
        self._options = options
        self.condition: str | None = None
        """Of the rows that the query reads, for a pipeline file that is written after it is set."""

    def lay_down(self, folder: Path) -> None:  # noqa: ARG002 - the topic is no file
        """Create the topic and fill it, unless another workspace has."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        if self._topic in admin.list_topics(timeout=30).topics:
            return
        self._create(readings())

    def _create(self, batches: Iterable[list[dict[str, object]]]) -> None:
        admin = AdminClient({"bootstrap.servers": self._servers})
        admin.create_topics([NewTopic(self._topic, PARTITIONS, 1)])[self._topic].result(30)
        producer = Producer({"bootstrap.servers": self._servers})
        for number, row in enumerate(row for rows in batches for row in rows):
            partition = SKEW[number % len(SKEW)]
            producer.produce(self._topic, json.dumps(row).encode(), str(number % KEYS), partition)
        assert producer.flush(30) == 0

    def create_again(self, times: int = 0) -> None:
        """Delete the topic and create it again, with fewer records than it had, or with all of them several times."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        admin.delete_topics([self._topic], operation_timeout=30)[self._topic].result(30)
        deadline = time.monotonic() + 30
        # The broker deletes the topic after it has answered.
        while self._topic in admin.list_topics(timeout=30).topics:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        self._create([*readings()] * times or list(readings())[:1])

    def compact(self) -> None:
        """Have the broker keep the newest record of each key only; no offset of an oldest record or an end changes."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        settings = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0"}
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
        ]
        [altered] = admin.incremental_alter_configs(
            [ConfigResource(ResourceType.TOPIC, self._topic, incremental_configs=entries)]
        ).values()
        altered.result(30)
        deadline, before = time.monotonic() + 60, len(records(self._servers, self._topic))
        # Only segments that have ended are compacted, and a segment ends when a record comes after its time.
        while len(records(self._servers, self._topic)) > before // 2:
            assert time.monotonic() < deadline
            self._produce_late()
            time.sleep(0.5)

    def _produce_late(self) -> None:
        """One record of each key in each partition."""
        producer = Producer({"bootstrap.servers": self._servers})
        late = json.dumps(next(iter(readings()))[0]).encode()
        for partition in range(PARTITIONS):
            for key in range(KEYS):
                producer.produce(self._topic, late, str(key), partition)
        assert producer.flush(30) == 0

    def allow(self, user: str) -> None:
        """Let a user read the topic, as a query with any group."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        kinds = ((ResourceType.TOPIC, self._topic), (ResourceType.GROUP, "*"))
        rules = [
            AclBinding(
                kind,
                name,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                AclOperation.READ,
                AclPermissionType.ALLOW,
            )
            for kind, name in kinds
        ]
        for created in admin.create_acls(rules).values():
            created.result(30)

    def delete_before(self, positions: Mapping[str, int]) -> None:
        """Have the broker remove everything before an offset of each partition, as its retention does."""
        ends = [TopicPartition(self._topic, int(partition), offset) for partition, offset in positions.items()]
        admin = AdminClient({"bootstrap.servers": self._servers})
        for removed in admin.delete_records(ends).values():
            removed.result(30)

    def source(self) -> str:
        """A subscription whose values are parsed as the files are."""
        options = {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": self._topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(ROWS_A_BATCH),
            **self._options,
        }
        given = "".join(f".option({name!r}, {value!r})" for name, value in options.items())
        parsed = f'F.from_json(F.col("value").cast("string"), "{SCHEMA}").alias("row")'
        kept = f".filter({self.condition!r})" if self.condition else ""
        return f'spark.readStream.format("kafka"){given}.load().select({parsed}).select("row.*"){kept}'
