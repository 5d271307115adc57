"""Sinks that cannot show what they hold: nothing is read, nothing is changed, and each says what it guarantees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import pytest

import slackwater as sw
from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import Cut, Owner, WriteContext
from slackwater.runtime.pipeline import OutputMode
from slackwater.sinks.common.contract import Sink
from slackwater.sinks.common.registry import catalogue, open_output
from slackwater.storage.open import open_write_store
from tests.support.errors import raises_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Writer:
    """An object as PySpark's foreach takes it."""

    def process(self, row: object) -> None:
        """Take a row."""


SINKS: tuple[Sink, ...] = (
    sw.sinks.kafka("clicks", bootstrap_servers="broker:9092"),
    sw.sinks.foreach(print),
    sw.sinks.foreach(Writer()),
    sw.sinks.console(numRows=5),
    sw.sinks.memory("clicks"),
    sw.sinks.noop(),
    sw.sinks.table("clicks"),
    sw.sinks.table("db.clicks", format="delta"),
    sw.sinks.table("db.clicks", format="jdbc"),
)
SILENT = tuple(sorted({sink.kind for sink in SINKS}))


def _id(sink: Sink) -> str:
    """The same in each process: a function's repr has its address."""
    return "-".join(sink.identity().values())


UNKNOWN: tuple[dict[str, str], ...] = ({}, {"kind": "nosuch", "topic": "clicks"}, {"kind": "", "path": "out"})
"""Identities of kinds that are not registered."""


@pytest.mark.parametrize(
    "identity", [*(sink.identity() for sink in SINKS), *UNKNOWN], ids=lambda identity: str(dict(identity))
)
def test_the_output_shows_nothing_and_cannot_be_changed(identity: Mapping[str, str]) -> None:
    output, backup = open_output(identity), open_write_store("memory://silent")
    cut = Cut(0, (1,), ("a",), 1)
    assert output.last_written() is None
    output.claim(Owner("a", "b", "c"))
    assert output.owner() is None
    assert output.damage("all") == ()
    assert output.log() is None
    assert output.relative_path("file:///a") is None
    assert not any((output.traits.reports_last_batch, output.traits.cuts, output.traits.swaps))
    assert output.location == open_output(dict(identity)).location
    for act in (
        lambda: output.cut_after(0, {}),
        lambda: output.cut(cut, {}, backup),
        lambda: output.restore(cut, backup),
    ):
        with raises_code(Refused, "sink-uncuttable"):
            act()
    if identity.get("kind") == "kafka":
        assert output.reader_path() == "clicks", "the topic, for subscribe"
        return
    with raises_code(PipelineError, "output-unreadable"):
        output.reader_path()


@pytest.mark.parametrize("sink", SINKS, ids=_id)
def test_the_catalogue_has_its_guarantee(sink: Sink) -> None:
    assert (sink.traits, sink.output_modes) in [
        (entry.traits, entry.output_modes) for entry in catalogue() if entry.name == sink.kind
    ]
    assert sink.traits.delivery.reason
    assert open_output(sink.identity()).traits == sink.traits


KAFKA: Any = sw.sinks.kafka


NO_REFERENCE = "open"


def _once(topic: str, **options: Any) -> Sink:
    return sw.sinks.kafka(topic, bootstrap_servers="b:1", exactly_once=True, **options)


FOREACH: Any = sw.sinks.foreach
MEMORY: Any = sw.sinks.memory
TABLE: Any = sw.sinks.table


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: KAFKA("", bootstrap_servers="b:1"), "kafka-address"),
        (lambda: KAFKA("a", bootstrap_servers=None), "kafka-address"),
        (lambda: KAFKA("a", bootstrap_servers="b:1", Topic="c"), "sink-option"),
        (lambda: KAFKA("a", bootstrap_servers="b:1", **{"kafka.bootstrap.servers": "c"}), "sink-option"),
        (lambda: KAFKA("a", bootstrap_servers="b:1", **{"kafka.acks": None}), "sink-option-value"),
        (lambda: KAFKA("a", bootstrap_servers="b:1", marker_topic="m"), "kafka-option"),
        (lambda: _once("a b"), "kafka-address"),
        (lambda: _once("a", marker_topic=".."), "kafka-address"),
        (lambda: _once("a", marker_topic="a"), "kafka-address"),
        (lambda: _once("a", includeHeaders=True), "kafka-option"),
        (lambda: _once("a", **{"kafka.transactional.id": "x"}), "sink-option"),
        (lambda: _once("a", **{"kafka.sasl.jaas.config": "required;"}), "kafka-option"),
        (lambda: _once("a", password=NO_REFERENCE), "sink-password"),
        (lambda: _once("a", **{"password": "env:A", "kafka.sasl.password": "b"}), "sink-password"),
        (lambda: FOREACH(5), "sink-function"),
        (lambda: FOREACH(None), "sink-function"),
        (lambda: FOREACH(Writer), "sink-function"),
        (lambda: MEMORY("a/b"), "memory-name"),
        (lambda: MEMORY(5), "memory-name"),
        (lambda: sw.sinks.console(checkpointLocation="x"), "sink-option"),
        (lambda: TABLE(""), "table-name"),
        (lambda: TABLE("a", format=None), "table-name"),
        (lambda: TABLE("a", checkpointLocation="x"), "sink-option"),
    ],
)
def test_what_cannot_be_used_is_refused(make: Callable[[], Sink], code: str) -> None:
    with raises_code(PipelineError, code):
        make()


def test_secrets_among_the_options_are_not_in_the_identity_or_the_repr() -> None:
    sink = KAFKA("a", bootstrap_servers="b:1", **{"kafka.sasl.jaas.config": "password=hidden"})
    assert "hidden" not in repr(sink) + repr(sink.identity())


@pytest.mark.parametrize(
    ("one", "two", "shared"),
    [
        (sw.sinks.kafka("a", bootstrap_servers="b:1"), sw.sinks.kafka("a", bootstrap_servers="b:1"), False),
        (sw.sinks.console(), sw.sinks.console(), False),
        (sw.sinks.foreach(print), sw.sinks.foreach(print), False),
        (sw.sinks.memory("a"), sw.sinks.memory("a"), True),
        (sw.sinks.memory("a"), sw.sinks.memory("b"), False),
        (sw.sinks.table("a"), sw.sinks.table("`A`"), True),
        (sw.sinks.table("a", format="delta"), sw.sinks.table("a", format="delta"), False),
    ],
    ids=["kafka", "console", "foreach", "one memory table", "two", "one file table", "delta table"],
)
def test_which_sinks_two_streams_may_share(one: Sink, two: Sink, *, shared: bool) -> None:
    pipeline = sw.Pipeline("work")
    pipeline.stream(name="one", sink=one)(_source)
    if not shared:
        pipeline.stream(name="two", sink=two)(_source)
        return
    with raises_code(PipelineError, "sink-shared"):
        pipeline.stream(name="two", sink=two)(_source)


@pytest.mark.parametrize(
    ("sink", "mode"),
    [(sw.sinks.memory("a"), "update"), (sw.sinks.table("a"), "complete"), (sw.sinks.table("a"), "update")],
    ids=["memory", "table complete", "table update"],
)
def test_an_output_mode_that_spark_does_not_allow(sink: Sink, mode: OutputMode) -> None:
    with raises_code(PipelineError, "output-mode"):
        sw.Pipeline("work").stream(name="one", sink=sink, output_mode=mode)(_source)


def test_a_memory_sink_is_not_restarted_in_append_mode() -> None:
    sink = sw.sinks.memory("clicks")
    sink.check(_frame(), _context(planned=-1))
    sink.check(_frame(), _context(planned=4, output_mode="complete"))
    with raises_code(Refused, "memory-restart"):
        sink.check(_frame(), _context(planned=4))


@pytest.mark.parametrize("sink", SINKS[:6], ids=_id)
def test_partitions_are_refused_where_there_are_none(sink: Sink) -> None:
    with raises_code(PipelineError, "partition-by-unused"):
        sink.check(_frame(), _context(partition_by=("day",)))


def _frame() -> DataFrame:
    """No DataFrame: these checks do not look at it."""
    return cast("DataFrame", object())


def _context(*, planned: int = -1, output_mode: str = "append", partition_by: tuple[str, ...] = ()) -> WriteContext:
    return WriteContext("id", "work/one", 1, output_mode, planned, partition_by)


def _source(spark: object) -> object:
    return spark
