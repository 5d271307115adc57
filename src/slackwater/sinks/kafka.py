"""Spark's own Kafka sink: a topic to which any number of streams may write, at least once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from slackwater.errors import PipelineError, StreamFailed
from slackwater.model.sink import Delivery, WriteContext
from slackwater.sinks.options import is_text, option_strings
from slackwater.sinks.partitioning import refuse_partitions
from slackwater.sinks.silent import SilentOutput, silent_traits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

KAFKA_TRAITS = silent_traits(
    Delivery("at-least-once", "an interrupted batch is sent again as a whole, and Kafka keeps both copies of its rows"),
    one_writer=False,
    continuous=True,
)
SERVERS = "kafka.bootstrap.servers"
WAIT_S_MAX = 10.0
CREATES_TOPICS = "auto.create.topics.enable"
SECURED = ("kafka.security.protocol", "kafka.sasl.", "kafka.ssl.")
"""Options whose values only Java's client can use: with one of these the broker is not asked before the start."""
COLUMNS = {"value": ("string", "binary"), "key": ("string", "binary")}
"""The types that Spark's ``KafkaWriter`` accepts."""


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """One topic. The rows have a column ``value``, and may have ``key``, ``headers`` and ``partition``."""

    topic: str
    bootstrap_servers: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    kind = "kafka"
    traits = KAFKA_TRAITS
    output_modes = ("append", "update", "complete")
    connectors = ("kafka",)

    def identity(self) -> Mapping[str, str]:
        """Kind and topic. The servers may change between restarts, as clusters grow and move."""
        return {"kind": self.kind, "topic": self.topic}

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Check the columns; and, without a secured connection, that the broker answers and has the topic.

        Raises PipelineError, or StreamFailed (``broker-unreachable``).
        """
        refuse_partitions(self.kind, context, 'choose Kafka\'s partition in a column "partition"')
        _check_columns(frame, context)
        if find_spec("confluent_kafka") is not None and not any(name.startswith(SECURED) for name in self.options):
            _check_topic(self.bootstrap_servers, self.topic)

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        """Set the format, its options, servers and topic on the writer."""
        given = {**self.options, SERVERS: self.bootstrap_servers, "topic": self.topic}
        return writer.format("kafka").options(**given)


def kafka(topic: str, *, bootstrap_servers: str, **options: object) -> KafkaSink:
    """Spark's Kafka sink: at least once. ``options`` are Spark's own, such as ``**{"kafka.acks": "all"}``.

    Raises PipelineError for a topic, servers or an option that cannot be used.
    """
    for name, value in (("topic", topic), ("bootstrap_servers", bootstrap_servers)):
        if not is_text(value):
            raise PipelineError(
                "kafka-address",
                f"The Kafka sink cannot use this {name}",
                expected='such as sinks.kafka("clicks", bootstrap_servers="broker:9092")',
                found=repr(value),
            )
    return KafkaSink(topic, bootstrap_servers, option_strings(options, ("checkpointlocation", "topic", SERVERS)))


def open_kafka_output(identity: Mapping[str, str]) -> SilentOutput:
    """The topic of a recorded identity."""
    return SilentOutput("kafka", KAFKA_TRAITS, f"Kafka topic {identity.get('topic')}")


def _check_columns(frame: DataFrame, context: WriteContext) -> None:
    types = {column.name.lower(): column.dataType.typeName() for column in frame.schema.fields}
    if "value" not in types:
        raise PipelineError(
            "sink-schema",
            f"The rows of stream {context.stream} have no column named value, which the Kafka sink writes",
            expected="value (string or binary), optionally key, headers, partition",
            found=", ".join(types) or "no column",
            hint='such as: frame.select(F.to_json(F.struct("*")).alias("value"))',
        )
    wrong = [name for name, allowed in COLUMNS.items() if name in types and types[name] not in allowed]
    if wrong:
        raise PipelineError(
            "sink-schema",
            f"The Kafka sink cannot write a column of stream {context.stream} with this type",
            expected=f"{wrong[0]}: string or binary",
            found=f"{wrong[0]}: {types[wrong[0]]}",
            hint=f'such as: F.col("{wrong[0]}").cast("string")',
        )


def _check_topic(servers: str, topic: str) -> None:
    """Raises StreamFailed where no broker answers, PipelineError where the topic is missing and is not created."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    # The client logs each failed connection to stderr; the exception below reports the failure once.
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        metadata = admin.list_topics(timeout=WAIT_S_MAX)
        missing = topic not in metadata.topics and not _creates_topics(admin, next(iter(metadata.brokers)))
    except KafkaException as error:
        raise StreamFailed(
            "broker-unreachable",
            f"No Kafka broker answers within {WAIT_S_MAX:.0f} seconds: {error.args[0].str()}",
            where=servers,
            hint="check bootstrap_servers, and that the broker runs",
        ) from error
    if missing:
        raise PipelineError(
            "kafka-topic",
            f"The Kafka topic {topic} does not exist, and the broker does not create topics by itself",
            where=servers,
            hint=f"create it: kafka-topics.sh --bootstrap-server {servers} --create --topic {topic}",
        )


def _creates_topics(admin: Any, broker: int) -> bool:
    """Whether the broker creates a topic when it is first written to; true where it does not let us ask."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra
    from confluent_kafka.admin import ConfigResource  # noqa: PLC0415

    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    try:
        settings = admin.describe_configs([resource])[resource].result(WAIT_S_MAX)
    except KafkaException:
        return True
    return bool(CREATES_TOPICS not in settings or settings[CREATES_TOPICS].value != "false")
