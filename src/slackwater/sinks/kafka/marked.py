"""An exactly-once topic with its marker topic: newest batch, existence, permissions, retention.

Errors of the client are translated by librdkafka's names; without a leading underscore, they are the protocol's
(https://kafka.apache.org/protocol, "Error Codes").
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, NewTopic, OffsetSpec

from slackwater.core.checkpoint import NONE_YET
from slackwater.core.errors import PipelineError, Refused, SinkUnreadable, StreamFailed
from slackwater.core.sink import Owner, WriteContext
from slackwater.sinks.common.directory import Mark, MarkerTarget, fenced, owned
from slackwater.sinks.common.problem import TASK_ERROR, Problem, unreadable
from slackwater.sinks.kafka.sink import Cluster, TopicAddress
from slackwater.sinks.kafka.transaction import (
    MARK_KEY,
    TopicSettings,
    Undecided,
    abort,
    commit,
    fencing_producer,
    read_mark,
)

REPORTED = "Kafka reports an error"
LOOK_UP = "the broker's log has the cause; the name in brackets is librdkafka's; then run the pipeline again"
NAMED = re.compile(r"(?P<name>[A-Z_]+): (?P<text>.*)", re.DOTALL)
_FAILED = Problem("kafka-failed", REPORTED, LOOK_UP)
_UNREACHABLE = Problem(
    "broker-unreachable", "No Kafka broker responded in time", "check bootstrap_servers, and that the broker runs"
)
_LOGIN = Problem(
    "kafka-login",
    "The Kafka broker refuses the login",
    'check kafka.security.protocol, kafka.sasl.mechanism and the user; password="env:NAME" names where it is',
)
_PRIVILEGE = Problem(
    "kafka-privilege",
    "The user of the Kafka sink lacks a permission",
    "allow the user to write to the topic, to read and write the marker topic, and to use the transactional id: "
    "kafka-acls.sh --add --producer --transactional-id slackwater- --resource-pattern-type prefixed",
)
_FENCED = Problem(
    "kafka-fenced",
    "The transaction was ended by another producer with its transactional id, or by its timeout",
    "if a batch takes longer than kafka.transaction.timeout.ms, raise it, or make batches smaller",
)
_MISSING = Problem("kafka-partition", "A row is addressed to a missing topic or partition", "correct the query")
_NAMES = {
    "_TRANSPORT _ALL_BROKERS_DOWN _TIMED_OUT _TIMED_OUT_QUEUE _RESOLVE _MSG_TIMED_OUT": _UNREACHABLE,
    "REQUEST_TIMED_OUT BROKER_NOT_AVAILABLE COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR": _UNREACHABLE,
    "LEADER_NOT_AVAILABLE": _UNREACHABLE,
    "_AUTHENTICATION _SSL SASL_AUTHENTICATION_FAILED": _LOGIN,
    "TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED": _PRIVILEGE,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED": _PRIVILEGE,
    "_FENCED PRODUCER_FENCED INVALID_PRODUCER_EPOCH": _FENCED,
    "_UNKNOWN_PARTITION _UNKNOWN_TOPIC UNKNOWN_TOPIC_OR_PART": _MISSING,
}
_BY_NAME = {
    **{name: problem for names, problem in _NAMES.items() for name in names.split()},
    "INVALID_TRANSACTION_TIMEOUT": Problem(
        "kafka-transaction-timeout",
        "The broker does not allow a transaction timeout of this length",
        "give a smaller kafka.transaction.timeout.ms, or raise transaction.max.timeout.ms of the broker",
    ),
    "MSG_SIZE_TOO_LARGE": Problem(
        "kafka-message-size",
        "A row is larger than the maximum size of a message",
        "raise kafka.max.request.size and the topic's max.message.bytes, or make rows smaller",
    ),
}


def problem_of(error: BaseException) -> Problem | None:
    """The problem of an exception, which Spark may quote from a task; ``None`` if it is not Kafka's."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return _named(error.args[0].name(), error.args[0].str())
    own = TASK_ERROR.search(str(error))
    if own is None:
        return None
    match = NAMED.fullmatch(own["text"]) if own["code"] == "kafka" else None
    if match is not None:
        return _named(match["name"], match["text"])
    return replace(next((one for one in _BY_NAME.values() if one.code == own["code"]), _FAILED), found=own["text"])


@contextmanager
def reading(where: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise _found(error).unreadable(where) from error
    except StreamFailed as error:
        raise unreadable(error) from error


@contextmanager
def writing(where: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        if error.args[0].name() in {"_INVALID_ARG", "_CONFLICT"}:
            raise PipelineError(
                "kafka-option",
                "Kafka's client cannot use an option of the sink",
                where=where,
                found=error.args[0].str(),
                hint="exactly-once sinks use librdkafka; its CONFIGURATION.md lists the settings",
            ) from error
        raise _found(error).failed(where) from error


def _found(error: BaseException) -> Problem:
    return problem_of(error) or replace(_FAILED, found=str(error))


def _named(name: str, text: str) -> Problem:
    return replace(_BY_NAME.get(name, _FAILED), found=" ".join(f"{text} ({name})".split())[:500])


WAIT_S_MAX = 10.0
CREATES_TOPICS = "auto.create.topics.enable"
CLEANUP = "cleanup.policy"
_FORBIDDEN = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})


def check_exists(servers: str, topic: str) -> None:
    """Raises PipelineError (``kafka-topic``) if a topic is missing and not auto-created, or StreamFailed."""
    with writing(servers):
        _check_exists(servers, topic, _admin_of(Cluster(servers)))


def _check_exists(servers: str, topic: str, admin: Any) -> None:
    metadata = admin.list_topics(timeout=WAIT_S_MAX)
    if topic in metadata.topics:
        return
    resource = ConfigResource(ConfigResource.Type.BROKER, str(next(iter(metadata.brokers))))
    try:
        settings = admin.describe_configs([resource])[resource].result(WAIT_S_MAX)
    except KafkaException:
        return  # Not every user may read settings.
    if CREATES_TOPICS not in settings or settings[CREATES_TOPICS].value != "false":
        return
    raise PipelineError(
        "kafka-topic",
        f"The Kafka topic {topic} does not exist, and the broker does not create topics by itself",
        where=servers,
        hint=f"create it: kafka-topics.sh --bootstrap-server {servers} --create --topic {topic}",
    )


def _admin_of(cluster: Cluster) -> Any:
    return AdminClient({**cluster.connection()})


def create_marker(cluster: Cluster, marker: str) -> None:
    admin = _admin_of(cluster)
    wanted = NewTopic(marker, 1, config={CLEANUP: "compact"})
    try:
        admin.create_topics([wanted], operation_timeout=WAIT_S_MAX, request_timeout=WAIT_S_MAX)[marker].result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if error.args[0].code() in _FORBIDDEN:
            # A broker asks for the right to create before it looks whether there is the topic.
            if marker in admin.list_topics(timeout=WAIT_S_MAX).topics:
                return
            raise _not_granted(
                "CREATE",
                marker,
                cluster.servers,
                f"create it: kafka-topics.sh --bootstrap-server {cluster.servers} --create --topic {marker} "
                f"--partitions 1 --config {CLEANUP}=compact",
            ) from error
        raise


def _check_policy(admin: Any, servers: str, marker: str) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, marker)
    try:
        policy = admin.describe_configs([resource], request_timeout=WAIT_S_MAX)[resource].result()[CLEANUP].value
    except KafkaException as error:
        if error.args[0].code() in _FORBIDDEN:
            return  # Not every user may read settings; the error for a topic that does not exist names the right ones.
        raise
    if policy != "compact":
        raise PipelineError(
            "kafka-marker-expires",
            f"The topic {marker} would forget the newest batch: its records are deleted after a time",
            where=servers,
            expected=f"{CLEANUP}=compact",
            found=f"{CLEANUP}={policy}",
            hint=f"kafka-configs.sh --bootstrap-server {servers} --alter --topic {marker} "
            f"--add-config {CLEANUP}=compact",
        )


def _not_granted(operation: str, topic: str, servers: str, hint: str) -> Refused:
    return Refused(
        "sink-grant",
        "The user of the sink lacks a privilege",
        where=servers,
        expected=f"{operation} on topic {topic}",
        hint=hint,
    )


# A large batch must fit into one transaction; librdkafka's default is one minute.
TRANSACTION_TIMEOUT_MS = 300_000
"""How long readers wait for a batch whose writer was killed, unless the stream is started again."""
_waited_for: defaultdict[str, dict[str, Undecided]] = defaultdict(dict)
"""Undecided records, by servers and marker topic: a start reads the mark ten times, and waits for them once."""


class MarkedTopic(TopicAddress, MarkerTarget):
    """A topic and its marker topic. Connections are opened on demand and not kept."""

    @cached_property
    def settings(self) -> TopicSettings:
        """The settings for tasks. Raises StreamFailed (``sink-password-missing``)."""
        return TopicSettings(
            self.topic,
            self.marker,
            {
                # Spark's sink and all clients of Java choose partitions by murmur2; librdkafka's default is another.
                "partitioner": "murmur2_random",
                "transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
                "queue.buffering.max.messages": "500000",
                "queue.buffering.max.kbytes": "262144",
                **self.cluster.producing(),
                "transactional.id": f"slackwater-{self.marker}",
            },
            {
                **self.cluster.connection(),
                # The client demands a group; nothing is ever committed to it.
                "group.id": f"slackwater-{self.marker}",
                "enable.auto.commit": "false",
                "isolation.level": "read_committed",
                # Reading ends with the partition, not by a timeout: its last records may be control records.
                "enable.partition.eof": "true",
                # The end of a partition is reported when a fetch has waited this long in vain.
                "fetch.wait.max.ms": "10",
            },
        )

    def check(self) -> None:
        """Raises PipelineError or Refused for an unusable topic, StreamFailed without a broker."""
        servers = self.cluster.servers
        with writing(self.location):
            admin = _admin_of(self.cluster)
            _check_exists(servers, self.topic, admin)
            wanted = {self.topic: ("WRITE",), self.marker: ("WRITE", "READ")}
            topics = TopicCollection(list(wanted))
            described = admin.describe_topics(topics, include_authorized_operations=True, request_timeout=WAIT_S_MAX)
            for topic, operations in wanted.items():
                try:
                    allowed = described[topic].result().authorized_operations
                except KafkaException as error:
                    # The broker may create the topic by itself.
                    if topic == self.topic and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    raise
                for operation in operations:
                    if allowed is not None and AclOperation[operation] not in allowed:
                        grant = f"kafka-acls.sh --bootstrap-server {servers} --add --allow-principal User:NAME"
                        how = f"{grant} --operation {operation} --topic {topic}"
                        raise _not_granted(operation, topic, servers, how)
            _check_policy(admin, servers, self.marker)

    def exists(self) -> bool:
        with reading(self.location):
            return self.topic in _admin_of(self.cluster).list_topics(timeout=WAIT_S_MAX).topics

    def is_new(self) -> bool:
        """Return whether no record was ever written, or there is no topic."""
        with reading(self.location):
            admin = _admin_of(self.cluster)
            known = admin.list_topics(timeout=WAIT_S_MAX).topics.get(self.topic)
            latest: Any = OffsetSpec
            numbers = () if known is None else known.partitions
            wanted = {TopicPartition(self.topic, number): latest.latest() for number in numbers}
            ends = admin.list_offsets(wanted, request_timeout=WAIT_S_MAX) if wanted else {}
            return all(end.result().offset == 0 for end in ends.values())

    def mark(self, wait_s_max: float = WAIT_S_MAX) -> Mark | None:
        with reading(self.location):
            return self._read(wait_s_max)

    def claim(self, owner: Owner) -> None:
        def claimed(known: Mark | None) -> Mark:
            if known is not None and known.stream_id != owner.stream_id:
                raise self._owned(known, owner.stream, owner.home)
            if known is None:
                return Mark(owner.stream_id, owner.stream, owner.home, 0, NONE_YET)
            return known._replace(stream=owner.stream, home=owner.home)

        with writing(self.location):
            # Asked before any transaction: it would end one of the stream that owns the topic.
            known = self._read(WAIT_S_MAX)
            if known is None:
                create_marker(self.cluster, self.marker)
            if known is None or known != claimed(known):
                self._change(claimed)

    def begin_epoch(self, context: WriteContext) -> None:
        """Refuse earlier runs and end their transactions. Raises Refused if a later run has started."""
        with writing(self.location):
            # Asked first without a producer, which would end the transaction of a later run or of another stream.
            self.check_fence(self._read(WAIT_S_MAX), context)
            self._change(lambda known: self.check_fence(known, context)._replace(epoch=context.epoch))

    def check_fence(self, mark: Mark | None, context: WriteContext) -> Mark:
        """Raises Refused if this run may not replace the mark."""
        if mark is None or mark.stream_id != context.stream_id:
            raise self._owned(mark, context.stream, None)
        if mark.epoch > context.epoch:
            key, value = MARK_KEY.decode(), json.dumps(mark._replace(epoch=0)._asdict())
            remedy = (
                f"write the record with the key {key} and the value {value} to the topic {self.marker}: "
                f"kafka-console-producer.sh --bootstrap-server {self.cluster.servers} --topic {self.marker} "
                "--property parse.key=true --property key.separator=@"
            )
            raise fenced(mark.epoch, self.location, context, remedy)
        return mark

    def _owned(self, mark: Mark | None, stream: str, home: str | None) -> Refused:
        return owned(
            mark,
            self.location,
            stream=stream,
            home=home,
            missing=f"no mark in {self.marker}",
            hint='give the stream a marker topic of its own: sinks.kafka(..., exactly_once=True, marker_topic="...")',
        )

    def _change(self, change: Callable[[Mark | None], Mark]) -> None:
        """Replace the mark in a transaction: no other write can come between."""
        producer = fencing_producer(replace(self.settings, wait_s_max=WAIT_S_MAX))
        new = change(self._read(WAIT_S_MAX))
        producer.begin_transaction()
        try:
            commit(producer, self.marker, new._asdict(), WAIT_S_MAX)
        except BaseException:
            abort(producer)
            raise

    def _read(self, wait_s_max: float) -> Mark | None:
        try:
            fields = read_mark(self.settings, wait_s_max, _waited_for[self.cluster.servers])
            return None if fields is None else Mark(**fields)
        except ValueError as error:
            raise SinkUnreadable(
                "kafka-mark-malformed",
                "The newest record in the marker topic was not written by Slackwater",
                where=self.location,
                expected='{"stream_id": ..., "stream": ..., "home": ..., "epoch": ..., "batch_id": ...}',
                found=str(error),
                hint=f"find the other writer of the topic {self.marker}, and write the record before it again",
            ) from error
