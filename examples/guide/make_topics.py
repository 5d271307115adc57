"""Writes the topics that the examples in kafka/ read: readings-1 and readings-2, two partitions each.

    KAFKA_SERVERS=localhost:9092 python make_topics.py

The keys are devices, the values JSON, and each record has a header with the kind of the reading.
"""

import json
import os

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from make_input import readings

TOPICS = ("readings-1", "readings-2")
PARTITIONS = 2
WAIT_S = 30


def write(servers: str) -> None:
    """Create the topics and fill them."""
    admin = AdminClient({"bootstrap.servers": servers})
    made = admin.create_topics([NewTopic(one, PARTITIONS, 1) for one in TOPICS])
    for topic in TOPICS:
        made[topic].result(WAIT_S)
    producer = Producer({"bootstrap.servers": servers})
    for number, row in enumerate(row for rows in readings() for row in rows):
        topic, headers = TOPICS[number % 3 // 2], [("kind", str(row["kind"]).encode())]
        partition = number % 5 // 3
        producer.produce(topic, json.dumps(row).encode(), str(row["device"]).encode(), partition, headers=headers)
    producer.flush(WAIT_S)


if __name__ == "__main__":
    write(os.environ.get("KAFKA_SERVERS", "localhost:9092"))
