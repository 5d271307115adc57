"""Positions of Kafka sources.

Asks through the Kafka client of the session's JVM, with the source's options: it reaches the same brokers as the query.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from slackwater.core.checkpoint import SourceFile
from slackwater.core.errors import EnvironmentMissing
from slackwater.core.escaping import one_line
from slackwater.core.facts import Unserved
from slackwater.core.masking import mask
from slackwater.core.program import SourceShape
from slackwater.core.targets import Target
from slackwater.core.units import utc_text
from slackwater.sources.common.contract import (
    Ahead,
    Asked,
    Position,
    Served,
    SourceSeen,
    SparkSource,
    Uncounted,
    listed,
    out_of_range,
    unsupported,
)
from slackwater.sources.common.source import LiveSource
from slackwater.sources.kafka import SOURCE as KAFKA
from slackwater.sources.kafka import Partition, as_json, partition_name, positions_of

if TYPE_CHECKING:
    from slackwater.sources.kafka.brokers import Brokers

Offsets: TypeAlias = Mapping[Partition, int]
CLIENT_PREFIX = "kafka."
TIMEOUTS = ("default.api.timeout.ms", "request.timeout.ms")
ANSWER_MS = 20_000
SHORT_ANSWER_MS = 1_800
"""Shorter than a start waits, so that the brokers' own reason is shown."""
CLOCKS_DIFFER_MS = 60_000
"""The most by which a read record's time may exceed the driver's clock."""
SERVERS = "kafka.bootstrap.servers"
SECURITY = ("kafka.security.", "kafka.sasl.", "kafka.ssl.")
TOPICS = "topics "
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id in answers of brokers before 2.8."""
BROKERS = "slackwater.sources.kafka.brokers"


Topics: TypeAlias = tuple[Mapping[Partition, tuple[int, int]], Mapping[str, str]]
"""The oldest offset and end of each partition of existing topics, and the ids, if there are any."""


def known_ids(ids: Mapping[str, str]) -> Mapping[str, str]:
    """The ids of topics as Kafka's tools print them, without the placeholder of brokers before 2.8.

    librdkafka prints the standard base64 alphabet, Kafka's own client the URL-safe alphabet.
    """
    return {name: one.replace("+", "-").replace("/", "_") for name, one in ids.items() if one != _NO_ID}


def offsets_at(source: SparkSource, time_ms: int) -> Offsets:
    specs = _specs(source)
    since, latest = _listed(source, specs.forTimestamp(time_ms), specs.latest())
    # -1: the partition has no record of that time or later.
    return {partition: offset if offset >= 0 else latest[partition] for partition, offset in since.items()}


def bounds(source: SparkSource) -> tuple[Offsets, Offsets]:
    """The oldest offset and the end of each partition; absent topics are omitted."""
    specs = _specs(source)
    earliest, latest = _listed(source, specs.earliest(), specs.latest())
    return earliest, latest


def _specs(source: SparkSource) -> Any:
    return source.jvm.org.apache.kafka.clients.admin.OffsetSpec


def _lower(source: SparkSource) -> dict[str, str]:
    return {name.lower(): value for name, value in source.options.items()}


def _listed(source: SparkSource, *specs: Any) -> list[dict[Partition, int]]:
    jvm, options = source.jvm, _lower(source)
    with _admin_client(jvm, source.options) as admin:
        partitions = list(_partitions(jvm, admin, options))
        level = _isolation(jvm, options)
        return [_offsets(jvm, admin, partitions, spec, level) for spec in specs]


@contextmanager
def _admin_client(jvm: Any, options: Mapping[str, str], answer_ms: int | None = None) -> Iterator[Any]:
    settings = jvm.java.util.HashMap()
    # Kafka waits a minute by default. Options of the source replace our time, but a start waits for no option.
    given = dict.fromkeys(TIMEOUTS, str(ANSWER_MS))
    given |= {
        name[len(CLIENT_PREFIX) :].lower(): value
        for name, value in options.items()
        if name.lower().startswith(CLIENT_PREFIX)
    }
    given |= dict.fromkeys(TIMEOUTS, str(answer_ms)) if answer_ms is not None else {}
    for name, value in given.items():
        settings.put(name, value)
    admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
    try:
        yield admin
    finally:
        admin.close()


def _partitions(jvm: Any, admin: Any, options: Mapping[str, str]) -> Iterator[Partition]:
    """The existing partitions that ``subscribe``, ``subscribePattern`` or ``assign`` selects.

    As in Spark's ``ConsumerStrategy``: a pattern need only occur in a topic's name, and internal topics are omitted.
    """
    assigned = {
        (topic, int(one)) for topic, numbers in json.loads(options.get("assign", "{}")).items() for one in numbers
    }
    existing = sorted(str(name) for name in admin.listTopics().names().get())
    if "subscribepattern" in options:
        pattern = jvm.java.util.regex.Pattern.compile(options["subscribepattern"].strip())
        chosen = [topic for topic in existing if pattern.matcher(topic).find()]
    else:
        named = {topic.strip() for topic in options.get("subscribe", "").split(",")} | {topic for topic, _ in assigned}
        chosen = [topic for topic in existing if topic in named]
    described = admin.describeTopics(_java_list(jvm, chosen)).allTopicNames().get()
    for topic in chosen:
        found = [(topic, int(partition.partition())) for partition in described[topic].partitions()]
        yield from (one for one in found if not assigned or one in assigned)


def _isolation(jvm: Any, options: Mapping[str, str]) -> Any:
    """The isolation level; with ``read_committed`` the end is before the first open transaction, as for Spark."""
    level = jvm.org.apache.kafka.common.IsolationLevel
    committed = options.get("kafka.isolation.level", "").lower() == "read_committed"
    return jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(
        level.READ_COMMITTED if committed else level.READ_UNCOMMITTED
    )


def _offsets(jvm: Any, admin: Any, partitions: Iterable[Partition], spec: Any, level: Any) -> dict[Partition, int]:
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


LISTED = 8


class KafkaLive(LiveSource):
    def position(self, source: SourceSeen, target: Target, given: str | None) -> Position:
        """The position of a Kafka source.

        Has every existing partition and no other. A partition missing from the current position is unread: a shift, or
        offsets that omit it, puts it at its oldest record, as Spark does. A time means the first record
        with that or a later timestamp, else the end.
        """
        earliest, latest = bounds(source.spark)
        current = positions_of(source.current)
        note = ""
        match target.kind:
            case "earliest":
                after = earliest
            case "latest":
                after = latest
            case "time":
                # A partition may have been added between the two questions.
                after = {one: at for one, at in offsets_at(source.spark, target.number).items() if one in latest}
                ended = [one for one, at in after.items() if at == latest[one]]
                note = f"; no record of that time or later: {_names(ended)}" if ended else ""
            case "shift":
                after = _shifted(source, earliest, latest, current, target.number)
            case "offsets":
                after = _given(source, earliest, current, given)
            case _:
                raise ValueError(target)
        if target.kind in ("shift", "offsets"):
            _check_range(source, after, earliest, latest)
        base = KAFKA.empty_base(as_json(after))
        if base is None:
            raise unsupported(
                source.where,
                "its topics have no partitions",
                hint="create the topics, or correct the source's subscription",
            )
        return source.at(base, _change(earliest, current, after) + note)

    def served(self, source: SparkSource) -> Served | None:
        earliest, latest = bounds(source)
        return Served(as_json(earliest), as_json(latest))

    def unserved(self, shape: SourceShape, asked: Asked, source: SparkSource | None = None) -> Sequence[Unserved]:
        before = positions_of(asked.start)
        with _brokers(shape, source) as brokers:
            held, ids = brokers.topics({topic for topic, _ in before} | _subscribed(shape))
            seen = _Seen(before, positions_of(asked.end), _subscribed(shape), held, asked.ids, ids)
            since = _since(seen, brokers, asked.start_ms)
        found = (seen.problem(one, asked.start_ms, since.get(one)) for one in seen.partitions)
        return tuple(one for one in found if one is not None)

    def ids(self, shape: SourceShape, offset: str | None, source: SparkSource | None = None) -> Mapping[str, str]:
        with _brokers(shape, source) as brokers:
            return brokers.ids({topic for topic, _ in positions_of(offset)} | _subscribed(shape))

    def ahead(self, end: str | None, read: Sequence[SourceFile], address: str | None, files_max: int) -> Ahead:
        """Read partitions, and new partitions of their topics. ``address`` names the brokers."""
        if address is None:
            raise Uncounted("does not name its brokers in the checkpoint")
        at = positions_of(end)
        with _brokers(SourceShape("kafka", options={SERVERS: address})) as brokers:
            held, _ = brokers.topics({topic for topic, _ in at})
        return Ahead(sum(max(newest - max(at.get(one, oldest), oldest), 0) for one, (oldest, newest) in held.items()))

    def unreachable(self, source: SparkSource, reason: str) -> EnvironmentMissing:
        return EnvironmentMissing(
            "kafka-unreachable",
            f"Cannot read offsets from the Kafka brokers: {reason}",
            where=_lower(source).get("kafka.bootstrap.servers", ""),
            hint="start the brokers, or check kafka.bootstrap.servers and the kafka.* options of the source",
        )


def _brokers(shape: SourceShape, source: SparkSource | None = None) -> AbstractContextManager[Brokers | SessionBrokers]:
    """The brokers of a source, for as long as they may take to answer. Raises EnvironmentMissing.

    Brokers that need credentials are asked through the session of a query about to start: no ledger has them.
    """
    servers = shape.options.get(SERVERS)
    protected = sorted(key for key in shape.options if key.startswith(SECURITY))
    if protected and source is not None:
        return _session_brokers(source)
    if servers is None or protected:
        why = f"the source has {protected[0]}, and credentials are not recorded" if protected else "none is recorded"
        raise EnvironmentMissing(
            "kafka-unreachable",
            f"Cannot read offsets from the Kafka brokers: {why}",
            where=servers,
            hint="compare the positions in the newest entry of offsets/ with kafka-get-offsets.sh; "
            "if the brokers need credentials, each start of the query compares the positions",
        )
    if find_spec("confluent_kafka") is None:
        raise EnvironmentMissing(
            "extra-missing", "Asking Kafka brokers needs confluent-kafka", where=servers,
            hint="pip install confluent-kafka",
        )  # fmt: skip
    found: AbstractContextManager[Brokers] = import_module(BROKERS).asked(servers)
    return found


@contextmanager
def _session_brokers(source: SparkSource) -> Iterator[SessionBrokers]:
    try:
        with _admin_client(source.jvm, source.options, SHORT_ANSWER_MS) as admin:
            yield SessionBrokers(source.jvm, admin)
    except source.errors as error:
        # py4j's own first line names a method; the second one is Java's exception with its message.
        lines = str(error).splitlines()
        raise LIVE.unreachable(source, mask(one_line(lines[min(1, len(lines) - 1)].lstrip(": ")))) from error


class SessionBrokers:
    """Like ``Brokers``, by the client of the session's JVM with the options of the source."""

    def __init__(self, jvm: Any, admin: Any) -> None:
        self._jvm, self._admin = jvm, admin

    def topics(self, names: Iterable[str]) -> Topics:
        found, specs = self._described(names), self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        partitions = [(name, int(one.partition())) for name, topic in found.items() for one in topic.partitions()]
        oldest, ends = (self._offsets(partitions, spec) for spec in (specs.earliest(), specs.latest()))
        return {one: (oldest[one], ends[one]) for one in partitions}, self._ids(found)

    def ids(self, names: Iterable[str]) -> Mapping[str, str]:
        return self._ids(self._described(names))

    def first_since(self, partitions: Iterable[Partition], time_ms: int) -> Mapping[Partition, int]:
        specs = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        return self._offsets(partitions, specs.forTimestamp(time_ms))

    def _described(self, names: Iterable[str]) -> Mapping[str, Any]:
        existing = {str(name) for name in self._admin.listTopics().names().get()}
        chosen = sorted(existing.intersection(names))
        described = self._admin.describeTopics(_java_list(self._jvm, chosen)).allTopicNames().get()
        return {name: described[name] for name in chosen}

    def _ids(self, described: Mapping[str, Any]) -> Mapping[str, str]:
        return known_ids({name: topic.topicId().toString() for name, topic in described.items()})

    def _offsets(self, partitions: Iterable[Partition], spec: Any) -> dict[Partition, int]:
        return _offsets(self._jvm, self._admin, partitions, spec, _isolation(self._jvm, {}))


def _since(seen: _Seen, brokers: Brokers | SessionBrokers, start_ms: int | None) -> Offsets:
    """For partitions without a recorded id: the first record that is newer than the batch, or -1.

    The batch up to the position cannot have read this record.
    """
    wanted = [one for one in seen.before if seen.has_passed(one) and not seen.is_known(one)]
    return brokers.first_since(wanted, start_ms + CLOCKS_DIFFER_MS) if wanted and start_ms is not None else {}


def _subscribed(shape: SourceShape) -> frozenset[str]:
    names = shape.location.removeprefix(TOPICS)
    return frozenset(names.split(",")) if names != shape.location else frozenset()


class _Seen(NamedTuple):
    """A source's positions, the planned batch's end, and the brokers' state; ids by topic."""

    before: Offsets
    after: Offsets
    subscribed: frozenset[str]
    held: Mapping[Partition, tuple[int, int]]
    ids_then: Mapping[str, str]
    ids_now: Mapping[str, str]

    @property
    def partitions(self) -> list[Partition]:
        return sorted(self.before.keys() | self.held.keys()) if self.before else []

    def is_known(self, partition: Partition) -> bool:
        return partition[0] in self.ids_then and partition[0] in self.ids_now

    def has_passed(self, partition: Partition) -> bool:
        """Return whether records before its position exist, which a batch must have read."""
        oldest, newest = self.held.get(partition, (0, 0))
        return oldest < min(newest, self.before[partition])

    def problem(self, partition: Partition, start_ms: int | None, since: int | None) -> Unserved | None:
        name, at, held = partition_name(partition), self.before.get(partition), self.held.get(partition)
        if at is None:
            added = held is not None and partition[0] in self.subscribed and held[0] > 0
            if not added or held is None:
                return None
            return Unserved("partition-added", name, "0 as the oldest offset", f"offset {held[0]}", held[0])
        if held is None or (self.subscribed and partition[0] not in self.subscribed):
            found = "no such partition" if held is None else "not subscribed"
            return Unserved("partitions-gone", name, f"offset {at}", found)
        return self._recreated(partition, start_ms, since) or self._outside(partition, since)

    def _recreated(self, partition: Partition, start_ms: int | None, since: int | None) -> Unserved | None:
        """The recreated topic, if any: known by its id, otherwise if all records before the position are too new."""
        (oldest, newest), at, topic = self.held[partition], self.before[partition], partition[0]
        unread = max(min(at, newest) - oldest, 0)
        name = partition_name(partition)
        if self.is_known(partition):
            then, now = self.ids_then[topic], self.ids_now[topic]
            return Unserved("topic-recreated", name, f"topic id {then}", f"id {now}", unread) if then != now else None
        if since != oldest or start_ms is None:
            return None
        expected = f"records before offset {at} from before {utc_text(start_ms)}"
        return Unserved("topic-recreated", name, expected, "only newer records", unread)

    def _outside(self, partition: Partition, since: int | None) -> Unserved | None:
        (oldest, newest), at, name = self.held[partition], self.before[partition], partition_name(partition)
        if at < oldest:
            return Unserved(
                "records-expired", name, f"records from offset {at}", f"offset {oldest} as the oldest", oldest - at
            )
        end = max(at, self.after.get(partition, 0))
        if end <= newest:
            return None
        # Of a topic that was created again no record is as old as the batch.
        cut = self.is_known(partition) or since is not None
        return Unserved(
            "log-cut" if cut else "behind-position", name, f"an end of {end} or later", f"end {newest}", end - newest
        )


def _shifted(source: SourceSeen, earliest: Offsets, latest: Offsets, current: Offsets, count: int) -> Offsets:
    """The shifted position; records lost from a partition's end were read, so the remaining end counts."""
    if not current:
        raise unsupported(
            source.where,
            "there is no recorded position from which it could be shifted",
            hint="use earliest, latest, time:..., by:... or offsets:FILE",
        )
    return {
        one: min(current[one], latest[one]) + count if one in current else oldest for one, oldest in earliest.items()
    }


def _given(source: SourceSeen, earliest: Offsets, current: Offsets, given: str | None) -> Offsets:
    KAFKA.check_offset(source.name, given, source.where)
    wanted = positions_of(given)
    absent = [one for one in wanted if one not in earliest]
    if absent:
        raise out_of_range(
            source.where,
            "it has no such partitions",
            expected=_names(earliest),
            found=_names(absent),
            hint="list only partitions that exist and that the source reads",
        )
    unlisted = [] if current else [one for one in earliest if one not in wanted]
    if unlisted:
        raise unsupported(
            source.where,
            "there is no recorded position at which partitions could stay",
            found=_names(unlisted),
            hint="list all partitions in the file",
        )
    return {one: wanted.get(one, current.get(one, oldest)) for one, oldest in earliest.items()}


def _check_range(source: SourceSeen, after: Offsets, earliest: Offsets, latest: Offsets) -> None:
    outside = [one for one, at in after.items() if not earliest[one] <= at <= latest[one]]
    if outside:
        raise out_of_range(
            source.where,
            "the brokers do not have these offsets",
            expected=listed(f"{partition_name(one)}: {earliest[one]} to {latest[one]}" for one in outside),
            found=listed(f"{partition_name(one)}: {after[one]}" for one in outside),
        )


def _change(earliest: Offsets, current: Offsets, after: Offsets) -> str:
    moves = {one: (current.get(one, earliest[one]), at) for one, at in after.items()}
    lines = (
        f"{partition_name(one)}: {start if one in current else 'new'} -> {at}"
        for one, (start, at) in sorted(moves.items())
    )
    counts = (
        (sum(max(start - at, 0) for start, at in moves.values()), "offsets are to be read again"),
        (sum(max(at - start, 0) for start, at in moves.values()), "offsets are skipped"),
    )
    parts = [f"{count} {what}" for count, what in counts if count]
    gone = sorted(current.keys() - after.keys())
    if gone:
        parts.append(f"no longer existing: {_names(gone)}")
    return "; ".join([listed(lines, LISTED), *parts])


def _names(partitions: Iterable[Partition]) -> str:
    return listed(map(partition_name, partitions), LISTED)


LIVE = KafkaLive(KAFKA)
