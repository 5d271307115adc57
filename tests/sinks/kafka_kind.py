"""A Kafka topic for the contract suite, written by plain transactions and read by a plain consumer."""

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from confluent_kafka import Producer

from slackwater.core.sink import Cut, Owner
from slackwater.sinks.kafka.sink import EXACTLY_ONCE
from tests.sinks.databases import LAST, OWNER, ROWS
from tests.support.kafka_topics import create_topic, values

FIELDS = {"stream_id": OWNER.stream_id, "stream": OWNER.stream, "home": OWNER.home, "epoch": 3}


class KafkaKind:
    """A topic with three partitions, and a marker topic next to it."""

    name = "kafka"
    traits = EXACTLY_ONCE
    owner: Owner | None = OWNER
    removes_files = True
    forks = True
    servers = "localhost:9092"

    def identity(self, folder: Path) -> Mapping[str, str]:
        topic = _topic(folder)
        names = {"topic": topic, "marker_topic": f"{topic}-slackwater-marker"}
        return {"kind": "kafka", "bootstrap_servers": self.servers, **names}

    def write(self, folder: Path) -> Mapping[int, str]:
        identity = self.identity(folder)
        create_topic(self.servers, identity["topic"], 3)
        create_topic(self.servers, identity["marker_topic"], cleanup_policy="compact")
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": "contract"})
        producer.init_transactions(30)
        for batch in range(LAST + 1):
            producer.begin_transaction()
            for row in range(ROWS if batch % 3 else 0):
                producer.produce(identity["topic"], f"{batch}/{row}".encode())
            mark = json.dumps({**FIELDS, "batch_id": batch}).encode()
            producer.produce(identity["marker_topic"], mark, b"slackwater", 0)
            producer.commit_transaction(30)
        return {}

    def reset(self, folder: Path) -> None:
        raise NotImplementedError

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        return {(value or b"").decode(): b"" for value in values(self.servers, _topic(folder))}

    def everything(self, folder: Path) -> Mapping[str, bytes]:
        marks = values(self.servers, self.identity(folder)["marker_topic"])
        newest = max(json.loads(mark or b"{}")["batch_id"] for mark in marks)
        return {**self.visible(folder), "newest": str(newest).encode(), "marks": str(len(marks)).encode()}

    def cut_names(self, folder: Path, cut: Cut) -> set[str]:
        raise NotImplementedError

    def kill_points(self, function: Callable[[], object], below: Path, prepare: Callable[[], object]) -> Iterator[int]:
        raise NotImplementedError


def _topic(folder: Path) -> str:
    return f"t-{sha256(str(folder).encode()).hexdigest()[:10]}"
