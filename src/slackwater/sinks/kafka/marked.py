"""An exactly-once topic with its marker topic: writer and newest batch."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property

from slackwater.core.errors import Refused, SinkUnreadable
from slackwater.core.sink import Owner, WriteContext
from slackwater.sinks.common.mark import NONE_YET, Mark, fenced, owned
from slackwater.sinks.kafka import topics
from slackwater.sinks.kafka.address import TopicAddress
from slackwater.sinks.kafka.problems import reading, writing
from slackwater.sinks.kafka.transaction import (
    MARK_KEY,
    Target,
    Undecided,
    abort,
    commit,
    fencing_producer,
    read_mark,
)

# A large batch must fit into one transaction; librdkafka's default is one minute.
TRANSACTION_TIMEOUT_MS = 300_000
"""How long readers wait for a batch whose writer was killed, unless the stream is started again."""
WAIT_S_MAX = 10.0
_waited_for: defaultdict[str, dict[str, Undecided]] = defaultdict(dict)
"""Undecided records, by servers and marker topic: a start reads the mark ten times, and waits for them once.
"""


class MarkedTopic(TopicAddress):
    """A topic and its marker topic. Connections are opened on demand and not kept."""

    @cached_property
    def target(self) -> Target:
        """The target for tasks. Raises StreamFailed (``sink-password-missing``)."""
        return Target(
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
        with writing(self.location):
            topics.check_target(self.cluster, self.topic, self.marker)

    def exists(self) -> bool:
        with reading(self.location):
            return topics.exists(self.cluster, self.topic)

    def is_new(self) -> bool:
        with reading(self.location):
            return topics.is_new(self.cluster, self.topic)

    def mark(self, wait_s_max: float = WAIT_S_MAX) -> Mark | None:
        with reading(self.location):
            return self._read(wait_s_max)

    def last_written(self) -> int:
        mark = self.mark()
        return NONE_YET if mark is None else mark.batch_id

    def owner(self) -> Owner | None:
        mark = self.mark()
        return None if mark is None else mark.owner

    def claim(self, owner: Owner) -> None:
        def claimed(known: Mark | None) -> Mark:
            if known is not None and known.stream_id != owner.stream_id:
                raise self._owned(known, owner.stream, owner.home)
            if known is None:
                return Mark(owner.stream_id, owner.stream, owner.home, 0, NONE_YET)
            return replace(known, stream=owner.stream, home=owner.home)

        with writing(self.location):
            # Asked before any transaction: it would end one of the stream that owns the topic.
            known = self._read(WAIT_S_MAX)
            if known is None:
                topics.create_marker(self.cluster, self.marker)
            if known is None or known != claimed(known):
                self._change(claimed)

    def begin_epoch(self, context: WriteContext) -> None:
        """Refuse earlier runs and end their transactions. Raises Refused if a later run has started."""
        with writing(self.location):
            # Asked first without a producer, which would end the transaction of a later run or of another stream.
            self.check_fence(self._read(WAIT_S_MAX), context)
            self._change(lambda known: replace(self.check_fence(known, context), epoch=context.epoch))

    def check_fence(self, mark: Mark | None, context: WriteContext) -> Mark:
        """Raises Refused if this run may not replace the mark."""
        if mark is None or mark.stream_id != context.stream_id:
            raise self._owned(mark, context.stream, None)
        if mark.epoch > context.epoch:
            key, value = MARK_KEY.decode(), json.dumps(asdict(replace(mark, epoch=0)))
            remedy = (
                f"write the record with the key {key} and the value {value} to the topic {self.marker}: "
                f"kafka-console-producer.sh --bootstrap-server {self.cluster.servers} --topic {self.marker} "
                "--property parse.key=true --property key.separator=@"
            )
            raise fenced(mark, self.location, context, remedy)
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
        producer = fencing_producer(replace(self.target, wait_s_max=WAIT_S_MAX))
        new = change(self._read(WAIT_S_MAX))
        producer.begin_transaction()
        try:
            commit(producer, self.marker, asdict(new), WAIT_S_MAX)
        except BaseException:
            abort(producer)
            raise

    def _read(self, wait_s_max: float) -> Mark | None:
        with self._parsing():
            fields = read_mark(self.target, wait_s_max, _waited_for[self.cluster.servers])
            return None if fields is None else Mark(**fields)

    @contextmanager
    def _parsing(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise SinkUnreadable(
                "kafka-mark-malformed",
                "The newest record in the marker topic is not one of Slackwater's",
                where=self.location,
                expected='{"stream_id": ..., "stream": ..., "home": ..., "epoch": ..., "batch_id": ...}',
                found=str(error),
                hint=f"find out who else writes to the topic {self.marker}, and write the record before it again",
            ) from error
