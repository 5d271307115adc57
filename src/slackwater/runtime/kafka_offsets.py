"""Asks the brokers of a query's Kafka sources for offsets: the oldest that they still have, and those of a time.

Through the Kafka client of the session's own JVM, with the options of the source: it reaches what the query reaches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from slackwater.errors import EnvironmentMissing
from slackwater.runtime.failures import reason_of, spark_errors
from slackwater.runtime.logical_plan import analysed_plan, source_options, streaming_sources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLIENT_PREFIX = "kafka."
ANSWER_MS = 20_000


def earliest_offsets(frame: DataFrame) -> Mapping[str, str]:
    """The oldest offset of each topic and partition in Spark's JSON, by the number of the source in the query.

    Sources of other kinds are left out, and so are topics that do not exist. Raises EnvironmentMissing
    (``kafka-unreachable``) where a broker does not answer.
    """
    jvm: Any = frame.sparkSession.sparkContext._jvm
    return {
        str(number): _earliest(jvm, source_options(relation))
        for number, relation in enumerate(streaming_sources(analysed_plan(frame)))
        if str(relation.sourceName()) == "kafka"
    }


def offsets_at(frame: DataFrame, relation: Any, time_ms: int) -> Mapping[tuple[str, int], int]:
    """Of each partition of a Kafka source, the offset of the first record of ``time_ms`` or later, else the end.

    Raises EnvironmentMissing (``kafka-unreachable``) where a broker does not answer.
    """
    jvm: Any = frame.sparkSession.sparkContext._jvm
    specs = jvm.org.apache.kafka.clients.admin.OffsetSpec
    options = source_options(relation)
    since, latest = _listed(jvm, options, specs.forTimestamp(time_ms), specs.latest())
    # -1: the partition has no record of that time or later.
    return {partition: offset if offset >= 0 else latest[partition] for partition, offset in since.items()}


def bounds(frame: DataFrame, relation: Any) -> tuple[Mapping[tuple[str, int], int], Mapping[tuple[str, int], int]]:
    """Of each partition of a Kafka source, the oldest offset that the broker still has, and the end.

    Raises EnvironmentMissing (``kafka-unreachable``) where a broker does not answer.
    """
    jvm: Any = frame.sparkSession.sparkContext._jvm
    specs = jvm.org.apache.kafka.clients.admin.OffsetSpec
    earliest, latest = _listed(jvm, source_options(relation), specs.earliest(), specs.latest())
    return earliest, latest


def as_json(offsets: Mapping[tuple[str, int], int]) -> str:
    """The offsets as Spark writes them."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(number)] = offset
    return json.dumps(topics, separators=(",", ":"))


def _earliest(jvm: Any, options: Mapping[str, str]) -> str:
    return as_json(_listed(jvm, options, jvm.org.apache.kafka.clients.admin.OffsetSpec.earliest())[0])


def _listed(jvm: Any, options: Mapping[str, str], *specs: Any) -> list[dict[tuple[str, int], int]]:
    lower = {name.lower(): value for name, value in options.items()}
    servers = lower.get("kafka.bootstrap.servers", "")
    try:
        with _admin_client(jvm, options) as admin:
            partitions = list(_partitions(jvm, admin, lower))
            level = _isolation(jvm, lower)
            return [_offsets(jvm, admin, partitions, spec, level) for spec in specs]
    except spark_errors() as error:
        raise EnvironmentMissing(
            "kafka-unreachable",
            f"Cannot read offsets from the Kafka brokers: {reason_of(error)}",
            where=servers,
            hint="start the brokers, or check kafka.bootstrap.servers and the kafka.* options of the source",
        ) from error


@contextmanager
def _admin_client(jvm: Any, options: Mapping[str, str]) -> Iterator[Any]:
    settings = jvm.java.util.HashMap()
    settings.put("default.api.timeout.ms", str(ANSWER_MS))
    settings.put("request.timeout.ms", str(ANSWER_MS))
    for name, value in options.items():
        if name.lower().startswith(CLIENT_PREFIX):
            settings.put(name[len(CLIENT_PREFIX) :].lower(), value)
    admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
    try:
        yield admin
    finally:
        admin.close()


def _partitions(jvm: Any, admin: Any, options: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """What the source's ``subscribe``, ``subscribePattern`` or ``assign`` selects, of the topics that exist."""
    listing = jvm.org.apache.kafka.clients.admin.ListTopicsOptions().listInternal(True)
    existing = {str(name) for name in admin.listTopics(listing).names().get()}
    if "assign" in options:
        assigned = json.loads(options["assign"])
        yield from ((topic, int(number)) for topic in assigned if topic in existing for number in assigned[topic])
        return
    if "subscribepattern" in options:
        pattern = jvm.java.util.regex.Pattern.compile(options["subscribepattern"])
        chosen = sorted(topic for topic in existing if pattern.matcher(topic).matches())
    else:
        chosen = sorted(existing & {topic.strip() for topic in options.get("subscribe", "").split(",")})
    described = admin.describeTopics(_java_list(jvm, chosen)).allTopicNames().get()
    for topic in chosen:
        yield from ((topic, int(partition.partition())) for partition in described[topic].partitions())


def _isolation(jvm: Any, options: Mapping[str, str]) -> Any:
    """The source's own: with ``read_committed`` the end is before the first open transaction, as it is for Spark."""
    level = jvm.org.apache.kafka.common.IsolationLevel
    committed = options.get("kafka.isolation.level", "").lower() == "read_committed"
    return jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(
        level.READ_COMMITTED if committed else level.READ_UNCOMMITTED
    )


def _offsets(
    jvm: Any, admin: Any, partitions: Iterable[tuple[str, int]], spec: Any, level: Any
) -> dict[tuple[str, int], int]:
    clients, wanted = jvm.org.apache.kafka, jvm.java.util.HashMap()
    keys = {partition: clients.common.TopicPartition(*partition) for partition in partitions}
    for key in keys.values():
        wanted.put(key, spec)
    found = admin.listOffsets(wanted, level)
    return {partition: int(found.partitionResult(key).get().offset()) for partition, key in keys.items()}


def _java_list(jvm: Any, values: Iterable[str]) -> Any:
    made = jvm.java.util.ArrayList()
    for value in values:
        made.add(value)
    return made
