"""Several sinks as one: which can be, whose marks count, and that each output keeps its own."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import slackwater as sw
from slackwater import sinks
from slackwater.core.errors import PipelineError, Refused, SinkUnreadable
from slackwater.core.sink import Owner, WriteContext
from slackwater.sinks.all_of import identity_of
from slackwater.sinks.common.contract import Sink
from slackwater.sinks.common.registry import catalogue, is_same_sink, member_identities, open_output
from slackwater.storage.local import LocalStore
from tests.sinks import test_opaque_output
from tests.sinks.databases import JDBC as JDBC_KIND
from tests.sinks.databases import OWNER, SqliteKind
from tests.sinks.kinds import LAST, DeltaKind, FilesKind
from tests.support.errors import raises_code

ALL_OF: Any = sinks.all_of
DELTA = sinks.delta("out")
JDBC = sinks.jdbc("sqlite:///out.db", "out")
POSTGRES = sinks.postgres("postgresql://user@host/db", "out", keep_batch_id=True)


def topic(name: str, marker: str | None = None, servers: str = "one:1") -> Any:
    return sinks.kafka(name, bootstrap_servers=servers, exactly_once=True, marker_topic=marker)


def save(_frame: object, _batch: object) -> None:
    """A batch function."""


FUNCTION = sinks.foreach_batch(save)
ICEBERG = sinks.iceberg("gold/out")
KAFKA_ONCE: Any = sinks.kafka("out", bootstrap_servers="a:1", exactly_once=True)
SINGLE: tuple[Sink, ...] = (
    *test_opaque_output.SINKS, DELTA, JDBC, POSTGRES, FUNCTION, ICEBERG, sinks.iceberg("lake.db.out"), KAFKA_ONCE,
    sinks.files("json", "x"), ALL_OF(DELTA, JDBC),
)  # fmt: skip


@pytest.mark.parametrize("sink", SINGLE, ids=lambda sink: sink.kind)
def test_what_can_be_one_of_several_says_so(sink: Sink) -> None:
    assert (type(sink).batch_writer is not Sink.batch_writer) == sink.traits.combines
    assert any(entry.name == sink.kind and entry.traits.combines == sink.traits.combines for entry in catalogue())


def test_the_same_outputs_are_recognised_when_brokers_change() -> None:
    known = ALL_OF(ICEBERG, KAFKA_ONCE).identity()
    moved: Any = sinks.kafka("out", bootstrap_servers="b:2", exactly_once=True)
    assert is_same_sink(known, ALL_OF(ICEBERG, moved).identity())
    assert not is_same_sink(known, ALL_OF(moved, ICEBERG).identity())
    assert not is_same_sink(known, ALL_OF(ICEBERG, moved, DELTA).identity())
    assert not is_same_sink(known, KAFKA_ONCE.identity())


def test_the_guarantee_is_that_of_the_weakest() -> None:
    exact = sinks.all_of(DELTA, POSTGRES)
    assert (exact.traits.delivery.guarantee, exact.traits.cuts, exact.traits.reports_last_batch) == (
        "exactly-once",
        True,
        True,
    )
    assert exact.output_modes == ("append",)
    assert exact.connectors == ("delta",)
    uncut = sinks.all_of(DELTA, JDBC)
    assert (uncut.traits.cuts, uncut.output_modes) == (False, ("append", "complete"))
    weak = sinks.all_of(DELTA, FUNCTION)
    assert (weak.traits.delivery.guarantee, weak.traits.reports_last_batch) == ("at-least-once", False)
    assert FUNCTION.traits.delivery.reason in weak.traits.delivery.reason
    for sink in (exact, uncut, weak):
        assert open_output(sink.identity()).traits == sink.traits


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ((), "all-of-sinks"),
        ((DELTA,), "all-of-sinks"),
        ((DELTA, sinks.files("json", "x")), "all-of-sink"),
        ((DELTA, ALL_OF(DELTA, JDBC)), "all-of-sink"),
        ((DELTA, sinks.DeltaSink), "all-of-sink"),
        ((DELTA, "out"), "all-of-sink"),
        ((sinks.delta("a", keys="id"), sinks.jdbc("sqlite:///a", "t")), None),
        ((sinks.postgres("postgresql://h/d", "a", mode="replace"), POSTGRES), "all-of-modes"),
        ((DELTA, sinks.delta(Path("x/../out"))), "sink-shared"),
        ((topic("a"), topic("b")), None),
        ((topic("a", servers="one:1"), topic("a", servers="two:1")), None),
        ((topic("a", "m"), topic("b", "m")), "sink-marker-shared"),
        ((topic("a", "m", "one:1,two:1"), topic("b", "m", "three:1, two:1")), "sink-marker-shared"),
    ],
)
def test_what_cannot_be_combined(given: tuple[object, ...], code: str | None) -> None:
    if code is None:
        assert ALL_OF(*given).output_modes
        return
    with raises_code(PipelineError, code):
        ALL_OF(*given)


def test_an_identity_has_those_of_all_and_no_password() -> None:
    secret = sinks.postgres("postgresql://user:topsecret@host/db", "out")
    identity = sinks.all_of(DELTA, secret).identity()
    assert member_identities(identity) == (DELTA.identity(), secret.identity())
    assert "topsecret" not in repr(identity)
    with pytest.raises(SinkUnreadable):
        open_output({"kind": "all_of", "1.kind": "noop"})


def test_two_streams_do_not_share_one_of_the_outputs() -> None:
    pipeline = sw.Pipeline("clicks")
    pipeline.stream(sink=sinks.all_of(DELTA, JDBC), name="first")(save)
    for sink in (sinks.delta("out"), sinks.all_of(FUNCTION, JDBC)):
        with raises_code(PipelineError, "sink-shared"):
            pipeline.stream(sink=sink, name="second")(save)


def test_the_marks(tmp_path: Path) -> None:
    first, second = FilesKind("a", 100, purged=False), SqliteKind(*JDBC_KIND)
    first.write(tmp_path / "1")
    second.write(tmp_path / "2")
    both = identity_of([first.identity(tmp_path / "1"), second.identity(tmp_path / "2")])
    assert open_output(both).last_written() == LAST
    assert (
        open_output(identity_of([first.identity(tmp_path / "1"), second.identity(tmp_path / "none")])).last_written()
        == -1
    )
    assert open_output(identity_of([first.identity(tmp_path / "1"), {"kind": "noop"}])).last_written() is None


def test_no_output_is_claimed_where_another_stream_owns_one(tmp_path: Path) -> None:
    output = open_output(identity_of([FilesKind(name, 100, purged=False).identity(tmp_path / name) for name in "ab"]))
    second = open_output(FilesKind("b", 100, purged=False).identity(tmp_path / "b"))
    second.claim(Owner("other", "clicks/other", "/srv/other"))
    with raises_code(Refused, "sink-owned"):
        output.claim(OWNER)
    assert not (tmp_path / "a").exists()


def test_damage_names_the_output(tmp_path: Path) -> None:
    kind = FilesKind("a", 100, purged=False)
    for name in "ab":
        kind.write(tmp_path / name)
    newest = open_output(kind.identity(tmp_path / "b")).cut_after(LAST - 1, {}).files[0]
    (tmp_path / "b" / newest).unlink()
    output = open_output(identity_of([kind.identity(tmp_path / "a"), kind.identity(tmp_path / "b")]))
    assert [one.path for one in output.damage()] == [f"{tmp_path}/b/{newest}"]


def test_nothing_is_cut_where_one_output_has_changed(tmp_path: Path) -> None:
    kind = FilesKind("a", 100, purged=False)
    for name in "ab":
        kind.write(tmp_path / name)
    output = open_output(identity_of([kind.identity(tmp_path / "a"), kind.identity(tmp_path / "b")]))
    cut = output.cut_after(7, {})
    whole = dict(kind.everything(tmp_path / "a"))
    (tmp_path / "b" / "_spark_metadata" / "12").unlink()
    with raises_code(Refused, "cut-mismatch"):
        output.cut(cut, {}, LocalStore(tmp_path / "backup"))
    assert kind.everything(tmp_path / "a") == whole


def test_an_output_that_cannot_be_cut_refuses_for_all(tmp_path: Path) -> None:
    kind, database = FilesKind("a", 100, purged=False), SqliteKind(*JDBC_KIND)
    kind.write(tmp_path / "a")
    database.write(tmp_path / "b")
    output = open_output(identity_of([kind.identity(tmp_path / "a"), database.identity(tmp_path / "b")]))
    with raises_code(Refused, "sink-uncuttable") as refused:
        output.cut_after(7, {})
    assert "out" in refused.value.message


def test_a_later_stage_reads_the_first_that_can_be_read(tmp_path: Path) -> None:
    def path_of(*identities: Any) -> str:
        return open_output(identity_of(identities)).reader_path()

    files = FilesKind("a", 100, purged=False).identity(tmp_path / "a")
    table = DeltaKind("b").identity(tmp_path / "b")
    assert path_of(JDBC.identity(), files, table) == str(tmp_path / "a")
    with raises_code(PipelineError, "output-unreadable"):
        path_of(JDBC.identity(), FUNCTION.identity())
    # It will exist, and must not be replaced by another meanwhile.
    # It will exist, and must not be replaced by another meanwhile.
    with raises_code(PipelineError, "output-absent"):
        path_of(table, files)


class Frame:
    """As much of a DataFrame as is used to compute it once."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.storageLevel = SimpleNamespace(useMemory=False, useDisk=False)

    def persist(self) -> None:
        self.calls.append("persist")
        self.storageLevel.useMemory = True

    def unpersist(self) -> None:
        self.calls.append("unpersist")
        self.storageLevel.useMemory = False


def test_a_batch_is_computed_once_and_the_rest_of_the_outputs_wait_for_the_first() -> None:
    frame: Any = Frame()

    def writer(name: str, *, fails: bool = False) -> Callable[[object, object], None]:
        def write(_frame: object, batch: object) -> None:
            frame.calls.append(f"{name} {batch}")
            if fails:
                raise ZeroDivisionError

        return write

    def run(*functions: Callable[[object, object], None]) -> None:
        sink = sinks.all_of(*(sinks.foreach_batch(one, name=str(n)) for n, one in enumerate(functions)))
        attached: Any = sink.attach(type("W", (), {"foreachBatch": staticmethod(lambda f: f)})(), CONTEXT)
        attached(frame, 4)

    run(writer("a"), writer("b"))
    assert frame.calls == ["persist", "a 4", "b 4", "unpersist"]
    frame.calls.clear()
    with pytest.raises(ZeroDivisionError):
        run(writer("a", fails=True), writer("b"))
    assert frame.calls == ["persist", "a 4", "unpersist"]


CONTEXT = WriteContext("5f0e", "clicks/orders", 3, "append")
