"""Topics as described by brokers: existence, permissions, retention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, NewTopic, OffsetSpec

from slackwater.core.errors import PipelineError, Refused
from slackwater.sinks.kafka.cluster import Cluster
from slackwater.sinks.kafka.problems import writing

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
    if topic in metadata.topics or _creates_topics(admin, next(iter(metadata.brokers))):
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
            raise _not_granted("CREATE", marker, cluster.servers, _creation(marker, cluster.servers)) from error
        raise


def check_target(cluster: Cluster, topic: str, marker: str) -> None:
    """Raises PipelineError or Refused (``sink-grant``), or KafkaException."""
    admin = _admin_of(cluster)
    _check_exists(cluster.servers, topic, admin)
    _check_permissions(admin, cluster.servers, {topic: ("WRITE",), marker: ("WRITE", "READ")}, created=topic)
    _check_policy(admin, cluster.servers, marker)


def _check_permissions(admin: Any, servers: str, wanted: Mapping[str, tuple[str, ...]], *, created: str) -> None:
    """Check the permissions. ``created`` is the topic that the broker may auto-create."""
    names = TopicCollection(list(wanted))
    described = admin.describe_topics(names, include_authorized_operations=True, request_timeout=WAIT_S_MAX)
    for topic, operations in wanted.items():
        try:
            allowed = described[topic].result().authorized_operations
        except KafkaException as error:
            if topic == created and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            raise
        for operation in operations:
            if allowed is not None and AclOperation[operation] not in allowed:
                grant = f"kafka-acls.sh --bootstrap-server {servers} --add --allow-principal User:NAME"
                raise _not_granted(operation, topic, servers, f"{grant} --operation {operation} --topic {topic}")


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


def _creation(marker: str, servers: str) -> str:
    return (
        f"create it: kafka-topics.sh --bootstrap-server {servers} --create --topic {marker} --partitions 1 "
        f"--config {CLEANUP}=compact"
    )


def _not_granted(operation: str, topic: str, servers: str, hint: str) -> Refused:
    return Refused(
        "sink-grant",
        "The user of the sink lacks a privilege",
        where=servers,
        expected=f"{operation} on topic {topic}",
        hint=hint,
    )


def _creates_topics(admin: Any, broker: int) -> bool:
    """Return whether the broker auto-creates topics; true if it does not report it."""
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    try:
        settings = admin.describe_configs([resource])[resource].result(WAIT_S_MAX)
    except KafkaException:
        return True
    return bool(CREATES_TOPICS not in settings or settings[CREATES_TOPICS].value != "false")


def is_new(cluster: Cluster, topic: str) -> bool:
    """Return whether no record was ever written, or there is no topic. Raises KafkaException."""
    admin = _admin_of(cluster)
    known = admin.list_topics(timeout=WAIT_S_MAX).topics.get(topic)
    if known is None:
        return True
    latest: Any = OffsetSpec
    wanted = {TopicPartition(topic, number): latest.latest() for number in known.partitions}
    ends = admin.list_offsets(wanted, request_timeout=WAIT_S_MAX)
    return all(end.result().offset == 0 for end in ends.values())


def exists(cluster: Cluster, topic: str) -> bool:
    return topic in _admin_of(cluster).list_topics(timeout=WAIT_S_MAX).topics
