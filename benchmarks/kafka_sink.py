"""The Kafka sink, exactly once, against Spark's own, which is at-least-once: one batch, in turns.

    python benchmarks/kafka_sink.py [--rows 500000] [--bytes 200] [--rounds 8] [--tasks 2] [--partitions 4]

Each round writes the same rows to a topic with each method; both use the settings of ``SETTINGS``. The first round
warms up and does not count. The ratio is that of the medians, as throughput. Needs Java 17 and the kafka extra; the
jars of the connector and of the broker are locked connectors (``slackwater connectors fetch kafka kafka-broker``).
"""

from __future__ import annotations

import sys

# This folder has a file with the name of a module of the standard library, and Python searches the folder first.
if __name__ == "__main__":
    del sys.path[0]

import importlib.util

if importlib.util.find_spec("slackwater") is None:
    print("benchmarks/kafka_sink.py: the slackwater package is not installed", file=sys.stderr)
    print("hint: activate the development environment (scripts/setup)", file=sys.stderr)
    sys.exit(9)

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from examples.demo.broker import Broker
from slackwater import sinks
from slackwater.core.errors import SlackwaterError
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.sinks.common.registry import open_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GOAL = 0.7
MOST_S = 400
"""No round starts later than this, so that the benchmark finishes in under 8 minutes on a slow machine."""
SETTINGS = {"kafka.acks": "all", "kafka.compression.type": "none", "kafka.linger.ms": "5", "kafka.batch.size": "262144"}
Method = Callable[[], None]


def main() -> None:
    """Parse, measure, report; exit code 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=4)
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="slackwater-kafka-") as folder, Broker.start(Path(folder)) as broker:
            spark = session(options.tasks)
            frame = rows_of(spark, options.rows, options.bytes, options.tasks)
            topics = Topics(broker.bootstrap_servers, options.partitions)
            samples = run_rounds(topics, frame, options.rounds)
            end_session(spark)
    except SlackwaterError as error:
        print(f"benchmarks/kafka_sink.py: {error}", file=sys.stderr)
        print(f"hint: {error.hint}" if error.hint else "", file=sys.stderr)
        sys.exit(error.exit_code)
    sys.exit(0 if report(samples) else 1)


def session(tasks: int) -> SparkSession:
    """A session with the Kafka connector, made as a run makes it."""
    settings = {"spark.driver.memory": "2g"}
    return start_session(SessionOptions("kafka sink", f"local[{tasks}]", settings, ("kafka",)), print)


def rows_of(spark: SparkSession, rows: int, size: int, tasks: int) -> DataFrame:
    """The rows, in memory: what is measured is writing them. The values differ and do not compress to nothing."""
    value = f"CAST(rpad(concat(id, ':', sha2(CAST(id AS STRING), 512)), {size}, md5(CAST(id AS STRING))) AS BINARY)"
    frame = spark.range(0, rows, 1, tasks).selectExpr(f"{value} AS value").cache()
    frame.count()
    return frame


class Topics:
    """A new topic for each measurement: a topic that grows would be slower for whoever comes later."""

    def __init__(self, servers: str, partitions: int) -> None:
        self.servers = servers
        self._partitions = partitions
        self._admin = AdminClient({"bootstrap.servers": servers})

    def create(self, name: str) -> str:
        """Create it; its name."""
        self._admin.create_topics([NewTopic(name, self._partitions, 1)])[name].result(30)
        return name

    def delete(self, name: str) -> None:
        """Delete it."""
        self._admin.delete_topics([name])[name].result(30)

    def visible_until(self, name: str) -> int:
        """The sum of the offsets up to which committed records can be read: records, and one for each transaction."""
        settings = {"bootstrap.servers": self.servers, "group.id": "count", "isolation.level": "read_committed"}
        consumer = Consumer(settings)
        try:
            places = [TopicPartition(name, partition) for partition in range(self._partitions)]
            return sum(consumer.get_watermark_offsets(place, 30)[1] for place in places)
        finally:
            consumer.close()


def methods(topics: Topics, frame: DataFrame) -> dict[str, Callable[[str], Method]]:
    """Name to a function that prepares a topic and returns what writes one batch to it."""

    def ours(topic: str) -> Method:
        sink = sinks.kafka(topic, bootstrap_servers=topics.servers, exactly_once=True, **SETTINGS)
        context = WriteContext("benchmark", "bench/rows", 1, "append")
        open_output(sink.identity()).claim(Owner(context.stream_id, context.stream, ""))
        sink.check(frame, context)
        writer: Any = SimpleNamespace(foreachBatch=lambda function: function)
        function: Any = sink.attach(writer, context)
        return lambda: function(frame, 0)

    def sparks(topic: str) -> Method:
        given = {**SETTINGS, "kafka.bootstrap.servers": topics.servers, "topic": topic}
        return lambda: frame.write.format("kafka").options(**given).save()

    return {"exactly once": ours, "Spark's own": sparks}


def run_rounds(topics: Topics, frame: DataFrame, rounds: int) -> dict[str, list[float]]:
    """Both methods in turns; every other round goes backwards."""
    written_by = methods(topics, frame)
    samples: dict[str, list[float]] = {name: [] for name in written_by}
    expected, deadline = frame.count(), time.monotonic() + MOST_S
    for number in range(rounds + 1):
        if number > 1 and time.monotonic() > deadline:
            print(f"stopped after {number - 1} of {rounds} rounds, to finish in under 8 minutes", flush=True)
            break
        for place, name in enumerate(written_by if number % 2 else reversed(written_by)):
            topic = topics.create(f"rows-{number}-{place}")
            write = written_by[name](topic)
            started = time.perf_counter()
            write()
            took_s = time.perf_counter() - started
            found = topics.visible_until(topic)
            if not expected <= found <= expected + 16:
                sys.exit(f"{name}: {found} offsets for {expected} rows")
            topics.delete(topic)
            print(f"round {number}  {name:14} {took_s:7.2f} s{'' if number else '  (warm-up)'}", flush=True)
            if number:
                samples[name].append(took_s)
    return samples


def report(samples: dict[str, list[float]]) -> bool:
    """Print minima, medians and the ratio; whether the goal is met."""
    medians = {name: statistics.median(taken) for name, taken in samples.items()}
    for name, taken in samples.items():
        print(f"{name:14} min {min(taken):6.2f} s  median {medians[name]:6.2f} s")
    ratio = medians["Spark's own"] / medians["exactly once"]
    print(f"exactly once has {ratio:.2f} of the throughput of Spark's own sink, goal at least {GOAL:.1f}")
    return ratio >= GOAL


if __name__ == "__main__":
    main()
