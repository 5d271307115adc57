"""``sinks.kafka``: a topic, by Spark's own sink at least once, or by transactions exactly once.

Spark's ``kafka.*`` options are the Java client's; exactly-once sinks use librdkafka, with partly different names:
https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md. Its client, an extra, is imported lazily.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from slackwater.core.checkpoint import Damage, Depth
from slackwater.core.errors import EnvironmentMissing, PipelineError
from slackwater.core.sink import CatalogueEntry, Delivery, Identity, Traits, WriteContext, WriterCalls
from slackwater.sinks.common.batch_function import WriteBatch
from slackwater.sinks.common.contract import LostMarker, OpaqueOutput, Output, Sink
from slackwater.sinks.common.directory import AppendOnlyOutput, MarkerTarget, marked_traits
from slackwater.sinks.common.problem import (
    is_text,
    malformed_identity,
    option_strings,
    password_reference,
    read_password,
    refuse_partitions,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from slackwater.sinks.kafka.marked import MarkedTopic


PREFIX = "kafka."
RECORDED = frozenset(
    {
        *("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username"),
        *("sasl.kerberos.service.name", "sasl.kerberos.principal", "sasl.kerberos.keytab"),
        *("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.endpoint.identification.algorithm"),
        *("enable.ssl.certificate.verification", "client.dns.lookup", "broker.address.family"),
    }
)
"""Settings without secrets that are needed to read the topic; kept with the sink's identity."""
CONNECTION = ("security.", "sasl.", "ssl.", "socket.", "client.", "broker.", "enable.ssl.")
"""Settings that clients of every kind have. All others are for producers only."""
RENAMED = {"max.request.size": "message.max.bytes"}
JAAS = "sasl.jaas.config"
JAAS_LOGIN = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')

_KNOWN: dict[tuple[str, frozenset[tuple[str, str]]], Mapping[str, str]] = {}
"""Connection secrets from the running program, by servers and recorded settings. They are not recorded."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """``settings`` are recordable librdkafka settings. ``password`` is ``env:NAME`` or ``file:PATH``.

    ``others`` are producer settings or secrets.
    """

    servers: str
    settings: Mapping[str, str] = field(default_factory=dict)
    password: str | None = None
    others: Mapping[str, str] = field(default_factory=dict, repr=False)

    def identity(self) -> dict[str, str]:
        reference = {"password": self.password} if self.password else {}
        return {"bootstrap_servers": self.servers, **{PREFIX + k: v for k, v in self.settings.items()}, **reference}

    def connection(self) -> dict[str, str]:
        """The settings for any client. Raises StreamFailed (``sink-password-missing``)."""
        return {name: value for name, value in self._all().items() if name.startswith(CONNECTION)} | self._base()

    def producing(self) -> dict[str, str]:
        return self._all() | self._base()

    def _all(self) -> dict[str, str]:
        secret = {"sasl.password": read_password(self.password, self.servers)} if self.password else {}
        return {**self.settings, **self.others, **secret}

    def _base(self) -> dict[str, str]:
        # The client logs each failed connection to stderr; our error reports it once.
        return {"bootstrap.servers": self.servers, "log_level": "0"}


def cluster_of(servers: str, options: Mapping[str, str], password: object) -> Cluster:
    foreign = sorted(name for name in options if not name.startswith(PREFIX))
    if foreign:
        raise PipelineError(
            "kafka-option",
            "An option of the exactly-once Kafka sink is no setting of Kafka's client",
            expected=f"names that start with {PREFIX}",
            found=", ".join(foreign),
        )
    settings = {name.removeprefix(PREFIX): value for name, value in options.items()}
    settings = {RENAMED.get(name, name): value for name, value in settings.items()}
    if JAAS in settings:
        login = {name: re.sub(r"\\(.)", r"\1", value) for name, value in JAAS_LOGIN.findall(settings.pop(JAAS))}
        if "username" not in login or "password" not in login:
            raise PipelineError(
                "kafka-option",
                f"The option {PREFIX}{JAAS} of the exactly-once Kafka sink has no user and password",
                expected='... required username="..." password="...";',
                found="something else, not shown here",
                hint="other logins are settings of librdkafka: kafka.sasl.*",
            )
        settings |= {"sasl.username": login["username"], "sasl.password": login["password"]}
    reference = password_reference(password, 'give "kafka.sasl.jaas.config" to keep it in this program only')
    if reference is not None and "sasl.password" in settings:
        raise PipelineError("sink-password", "The password of the sink is given twice", hint="remove one of them")
    recorded = {name: value for name, value in sorted(settings.items()) if name in RECORDED}
    others = {name: value for name, value in settings.items() if name not in RECORDED}
    secrets = {name: value for name, value in others.items() if name.startswith(CONNECTION)}
    if secrets:
        _KNOWN[_key(servers, recorded)] = secrets
    return Cluster(servers, recorded, reference, others)


def cluster_in(identity: Identity) -> Cluster:
    settings = {name.removeprefix(PREFIX): value for name, value in identity.items() if name.startswith(PREFIX)}
    servers = identity["bootstrap_servers"]
    return Cluster(servers, settings, identity.get("password"), _KNOWN.get(_key(servers, settings), {}))


def _key(servers: str, settings: Mapping[str, str]) -> tuple[str, frozenset[tuple[str, str]]]:
    return servers, frozenset(settings.items())


@dataclass(frozen=True)
class TopicAddress:
    cluster: Cluster
    topic: str
    marker: str

    @property
    def location(self) -> str:
        return f"{self.cluster.servers} {self.topic} (marker {self.marker})"


def open_topic(address: TopicAddress) -> MarkedTopic:
    if not has_client():
        raise EnvironmentMissing(
            "extra-missing", "An exactly-once Kafka sink needs confluent-kafka", where=address.location,
            hint="pip install confluent-kafka",
        )  # fmt: skip
    from slackwater.sinks.kafka.marked import MarkedTopic  # noqa: PLC0415 - imports confluent_kafka, an extra

    return MarkedTopic(address.cluster, address.topic, address.marker)


def has_client() -> bool:
    return find_spec("confluent_kafka") is not None


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
            hint='for example: frame.select(F.to_json(F.struct("*")).alias("value"))',
        )
    wrong = [name for name, allowed in COLUMNS.items() if name in types and types[name] not in allowed]
    if wrong:
        name = wrong[0]
        raise PipelineError(
            "sink-schema",
            f"The Kafka sink cannot write a column of stream {stream} with this type",
            expected=f"{name}: {' or '.join(COLUMNS[name])}",
            found=f"{name}: {types[name]}",
            hint=f'for example: F.col("{name}").cast("{CASTS.get(name, "string")}")',
        )


AT_LEAST_ONCE = Traits(
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


def open_kafka_output(identity: Identity) -> Output:
    topic = identity.get("topic", "")
    if MARKER not in identity:
        return OpaqueOutput("kafka", AT_LEAST_ONCE, f"Kafka topic {topic}", topic)
    if not topic or not identity.get("bootstrap_servers"):
        expected = '{"kind": "kafka", "topic": ..., "marker_topic": ..., "bootstrap_servers": ...}'
        raise malformed_identity(identity, "has no topic or no servers", expected)
    return MarkedTopicOutput(TopicAddress(cluster_in(identity), topic, identity[MARKER]))


class MarkedTopicOutput(AppendOnlyOutput[MarkerTarget]):
    """Batches are transactions. Kafka cannot delete individual records, so no batch can be cut."""

    def __init__(self, address: TopicAddress) -> None:
        message = f"Kafka cannot remove single batches from the topic {address.topic}"
        super().__init__("kafka", EXACTLY_ONCE, address.location, partial(open_topic, address), message)
        self.address = address

    def _damage(self, depth: Depth) -> Iterator[Damage]:
        written = self.last_written()
        if written >= 0 and depth == "all" and not open_topic(self.address).exists():
            yield Damage(self.address.topic, "missing", f"rows of batches up to {written}", "no topic")

    @property
    def marker_locations(self) -> frozenset[str]:
        servers = (server.strip() for server in self.address.cluster.servers.split(","))
        return frozenset(f"{server} {self.address.marker}" for server in servers)

    def lost_marker(self, marked: int) -> LostMarker | None:
        if marked < 0 and open_topic(self.address).is_new():
            return None
        both = f"the topics {self.address.topic} and {self.address.marker}"
        return LostMarker(f"delete {both if marked >= 0 else f'the topic {self.address.topic}'} and create it again")

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

    def identity(self) -> Identity:
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

    def identity(self) -> Identity:
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

    def batch_writer(self, context: WriteContext, /) -> WriteBatch:
        from slackwater.sinks.kafka.writer import write_batch  # noqa: PLC0415 - heavy; only a run pays for it

        return partial(write_batch, self.target, context)


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
            expected="a different topic, or no marker_topic for the default",
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


def recognise(calls: WriterCalls) -> Identity | None:
    """The identity of a writer's output; each row names its topic if the writer has none."""
    if calls.format != "kafka" or calls.function or calls.table:
        return None
    return {"kind": "kafka", "topic": calls.options.get("topic", "")}
