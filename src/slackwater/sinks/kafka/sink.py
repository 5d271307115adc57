"""``sinks.kafka``: a topic, by Spark's own sink at least once, or by transactions exactly once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from slackwater.core.checkpoint import Damage
from slackwater.core.errors import PipelineError, SinkUnreadable
from slackwater.core.sink import CatalogueEntry, Delivery, WriteContext, WriterCalls
from slackwater.sinks.common.contract import AppendOnlyOutput, MarkerTarget, OpaqueOutput, Output, Sink, opaque_traits
from slackwater.sinks.common.options import is_text, option_strings, refuse_partitions
from slackwater.sinks.common.owner import marked_traits
from slackwater.sinks.kafka.cluster import TopicAddress, cluster_in, cluster_of, has_client, open_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from slackwater.sinks.kafka.marked import MarkedTopic


COLUMNS = {
    "value": ("string", "binary"),
    "key": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}
"""The types of each column, as ``simpleString``. A column ``topic`` is ignored, as the sink sets the topic."""
CASTS = {"headers": "array<struct<key:string,value:binary>>", "partition": "int"}


def check_columns(frame: DataFrame, stream: str) -> None:
    """Raises PipelineError (``sink-schema``) without a value, or for a wrong type."""
    types = {column.name.lower(): column.dataType.simpleString() for column in frame.schema.fields}
    if "value" not in types:
        raise PipelineError(
            "sink-schema",
            f"The rows of stream {stream} have no column named value, which the Kafka sink writes",
            expected="value (string or binary), optionally key, headers, partition",
            found=", ".join(types) or "no column",
            hint='such as: frame.select(F.to_json(F.struct("*")).alias("value"))',
        )
    wrong = [name for name, allowed in COLUMNS.items() if name in types and types[name] not in allowed]
    if wrong:
        name = wrong[0]
        raise PipelineError(
            "sink-schema",
            f"The Kafka sink cannot write a column of stream {stream} with this type",
            expected=f"{name}: {' or '.join(COLUMNS[name])}",
            found=f"{name}: {types[name]}",
            hint=f'such as: F.col("{name}").cast("{CASTS.get(name, "string")}")',
        )


def written_columns(frame: DataFrame) -> DataFrame:
    present = {column.lower() for column in frame.columns}
    kinds = {"value": "binary", "key": "binary", **CASTS}
    return frame.selectExpr(*(f"CAST({name} AS {kinds[name]}) AS {name}" for name in COLUMNS if name in present))


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


MARKER_SUFFIX = "-slackwater-marker"
SERVERS = "kafka.bootstrap.servers"
SECURED = ("kafka.security.protocol", "kafka.sasl.", "kafka.ssl.")
"""Options whose values only Java's client can use: with any of these the broker is not checked before the start."""
TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
"""The topic names that brokers accept."""
OURS = ("kafka.transactional.id", "kafka.enable.idempotence", "kafka.isolation.level", "kafka.group.id")
PARTITION_HINT = 'choose Kafka\'s partition in a column "partition"'


@dataclass(frozen=True, slots=True)
class KafkaSink(Sink):
    """Rows have a column ``value``, and may have ``key``, ``headers`` and ``partition``."""

    topic: str
    bootstrap_servers: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    kind = "kafka"
    traits = AT_LEAST_ONCE
    connectors = ("kafka",)

    def identity(self) -> Mapping[str, str]:
        """The identity without servers, which may change as clusters grow and move."""
        return {"kind": self.kind, "topic": self.topic}

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Check columns and, on an unsecured connection, broker and topic.

        Raises PipelineError, or StreamFailed (``broker-unreachable``).
        """
        refuse_partitions(self.kind, context, PARTITION_HINT)
        check_columns(frame, context.stream)
        # The options for TLS and SASL differ between Java's client and librdkafka, which is used here.
        if has_client() and not any(name.startswith(SECURED) for name in self.options):
            from slackwater.sinks.kafka.marked import check_exists  # noqa: PLC0415 - imports confluent_kafka, an extra

            check_exists(self.bootstrap_servers, self.topic)

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        given = {**self.options, SERVERS: self.bootstrap_servers, "topic": self.topic}
        return writer.format("kafka").options(**given)


@dataclass(frozen=True, slots=True)
class ExactlyOnceKafkaSink(Sink):
    """Writes each batch in a transaction with its mark in the marker topic."""

    address: TopicAddress

    kind = "kafka"
    traits = EXACTLY_ONCE

    def identity(self) -> Mapping[str, str]:
        names = {"kind": self.kind, "topic": self.address.topic, MARKER: self.address.marker}
        return {**names, **self.address.cluster.identity()}

    @property
    def target(self) -> MarkedTopic:
        return open_topic(self.address)

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Check columns, topics and permissions, and refuse earlier runs.

        Raises PipelineError, Refused or StreamFailed.
        """
        refuse_partitions(self.kind, context, PARTITION_HINT)
        check_columns(frame, context.stream)
        self.target.check()
        self.target.begin_epoch(context)

    def batch_writer(self, context: WriteContext, /) -> Callable[[DataFrame, int], None]:
        from slackwater.sinks.kafka.writer import KafkaWriter  # noqa: PLC0415 - heavy; only a run pays for it

        return KafkaWriter(self.target, context).write


def kafka(
    topic: str,
    *,
    bootstrap_servers: str,
    exactly_once: bool = False,
    marker_topic: str | None = None,
    password: str | None = None,
    **options: object,
) -> KafkaSink | ExactlyOnceKafkaSink:
    """A Kafka topic: at least once by Spark's own sink, or with ``exactly_once=True`` by a transaction for each batch.

    ``bootstrap_servers`` are addresses as Spark takes them, such as ``"broker-1:9092,broker-2:9092"``.
    ``options`` are Spark's, such as ``**{"kafka.acks": "all"}``. With ``exactly_once`` they are settings of librdkafka
    after the prefix ``kafka.``; consumers that read only committed rows (``isolation.level=read_committed``) get each
    row once. ``marker_topic`` has the newest batch, by default ``TOPIC-slackwater-marker``, for one stream; it is
    created if it does not exist. ``password`` is ``"env:NAME"`` or ``"file:PATH"``, for ``sasl.password``. Raises
    PipelineError for a topic, servers or an option that cannot be used.
    """
    marker = f"{topic}{MARKER_SUFFIX}" if marker_topic is None else marker_topic
    for name, value in (("topic", topic), ("bootstrap_servers", bootstrap_servers), ("marker_topic", marker)):
        if not is_text(value) or (exactly_once and name != "bootstrap_servers" and not TOPIC_NAME.fullmatch(value)):
            raise PipelineError(
                "kafka-address",
                f"The Kafka sink cannot use this {name}",
                expected='such as sinks.kafka("clicks", bootstrap_servers="broker:9092")',
                found=repr(value),
            )
    if marker == topic:
        raise PipelineError(
            "kafka-address",
            "The marker topic of the Kafka sink is the topic itself; its consumers would read the markers as rows",
            expected="another topic, or no marker_topic for the default",
            found=repr(marker),
        )
    reserved = ("checkpointlocation", "topic", SERVERS)
    if exactly_once:
        cluster = cluster_of(bootstrap_servers, option_strings(options, (*reserved, *OURS)), password)
        return ExactlyOnceKafkaSink(TopicAddress(cluster, topic, marker))
    if marker_topic is not None or password is not None:
        raise PipelineError(
            "kafka-option",
            "Only an exactly-once Kafka sink has a marker topic and a password",
            expected="exactly_once=True",
            found="marker_topic" if marker_topic is not None else "password",
            hint="Spark's own sink takes the login in its options: kafka.sasl.jaas.config",
        )
    return KafkaSink(topic, bootstrap_servers, option_strings(options, reserved))


def recognise(calls: WriterCalls) -> Mapping[str, str] | None:
    """The identity of a writer's output; each row names its topic if the writer has none."""
    if calls.format != "kafka" or calls.function or calls.table:
        return None
    return {"kind": "kafka", "topic": calls.options.get("topic", "")}
