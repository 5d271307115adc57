"""What the Delta sink does to a table, in one Spark session: repeated batches, merges, cuts, checks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slackwater.core.errors import PipelineError, Refused, StreamFailed
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.run.failures import reason_of
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.sinks import DeltaSink, delta
from slackwater.sinks.delta.sink import DeltaOutput
from slackwater.sinks.delta.writer import table_in_sql
from slackwater.storage.local import LocalStore
from tests.support.errors import raises_code
from tests.support.small_disk import small_disk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
SCHEMA = "id long, v string"
Rows = list[tuple[int | None, str]]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    settings = {"spark.sql.shuffle.partitions": "1", "spark.databricks.delta.snapshotPartitions": "1"}
    session = start_session(SessionOptions("delta", "local[2]", settings, ("delta",)), lambda _: None)
    yield session
    end_session(session)


@dataclass
class Table:
    spark: SparkSession
    folder: Path
    sink: DeltaSink
    context: WriteContext

    def frame(self, rows: Rows) -> DataFrame:
        return self.spark.createDataFrame(rows, SCHEMA).coalesce(1)

    def write(self, batch: int, rows: Rows, *, planned: int = -1) -> None:
        """One batch, by a run that started when ``planned`` was planned."""
        context = replace(self.context, planned=planned)
        self.sink.batch_writer(context)(self.frame(rows), batch)

    @property
    def output(self) -> DeltaOutput:
        return DeltaOutput(self.sink.location)

    def rows(self) -> Rows:
        found = self.spark.read.format("delta").load(self.sink.location).select("id", "v").collect()
        return sorted(((row["id"], row["v"]) for row in found), key=repr)


def _table(spark: SparkSession, folder: Path, mode: str, *keys: str) -> Table:
    context = WriteContext(OWNER.stream_id, OWNER.stream, 1, mode)
    table = Table(spark, folder, delta(folder / "a `table`", keys=keys), context)
    table.output.claim(OWNER)
    table.sink.check(table.frame([]), context)
    return table


@pytest.mark.parametrize(
    ("mode", "keys", "final"),
    [
        pytest.param("append", (), [(1, "a"), (2, "b"), (2, "c"), (3, "d"), (None, "n")], marks=pytest.mark.thorough),
        ("update", ("id",), [(1, "a"), (2, "c"), (3, "d"), (None, "n")]),
        pytest.param("complete", (), [(2, "c"), (3, "d"), (None, "n")], marks=pytest.mark.thorough),
    ],
)
def test_batches_repeated_cut_and_undone(
    mode: str, keys: tuple[str, ...], final: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    table = _table(spark, tmp_path, mode, *keys)
    assert table.output.last_written() == -1
    first: Rows = [(1, "a"), (2, "b")]
    second: Rows = [(2, "c"), (3, "d"), (None, "n")]
    table.write(0, first)
    table.write(1, [] if mode != "complete" else first)
    table.write(2, second)
    assert table.rows() == sorted(final, key=repr)
    for planned in (-1, 2):
        table.write(2, second, planned=planned)
        table.write(1, first, planned=planned)
        assert table.rows() == sorted(final, key=repr)
        assert table.output.last_written() == 2

    backup = LocalStore(tmp_path / "backup")
    cut = table.output.cut_after(1, {})
    assert cut.batches == (2,)
    table.output.cut(cut, {}, backup)
    assert table.output.last_written() == 1
    assert table.rows() == first
    table.output.restore(cut, backup)
    assert table.rows() == sorted(final, key=repr)
    table.output.cut(cut, {}, backup)

    table.write(2, second, planned=2)
    assert table.rows() == sorted(final, key=repr), "after a cut the batch is not skipped"
    assert table.output.last_written() == 2


@pytest.mark.thorough
def test_spark_and_the_table_agree_after_more_versions_than_a_checkpoint_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = _table(spark, tmp_path, "append")
    for batch in range(12):
        table.write(batch, [(batch, "x")])
    spark.sql(f"OPTIMIZE {table_in_sql(table.sink.location)}")
    assert table.output.last_written() == 11
    table.output.cut(table.output.cut_after(4, {}), {}, LocalStore(tmp_path / "backup"))
    assert table.rows() == [(batch, "x") for batch in range(5)]
    table.write(5, [(50, "y")])
    assert table.rows() == [*((batch, "x") for batch in range(5)), (50, "y")]
    assert table.output.damage("all") == ()


def test_two_rows_with_one_key_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = _table(spark, tmp_path, "update", "id")
    with raises_code(StreamFailed, "merge-keys"):
        table.write(0, [(1, "a"), (1, "b")])
    assert table.rows() == []


def test_what_a_table_does_not_accept(spark: SparkSession, tmp_path: Path) -> None:
    table = _table(spark, tmp_path, "append")
    context, sink = table.context, table.sink
    for schema in ("id string, v string", "id long, v string, w int"):
        with raises_code(PipelineError, "delta-schema"):
            sink.check(spark.createDataFrame([], schema), context)
    sink.check(spark.createDataFrame([], "ID long"), context)
    delta(sink.path, mergeSchema=True).check(spark.createDataFrame([], "id long, w int"), context)
    for other, changed in ((sink, replace(context, partition_by=("v",))), (delta(sink.path, keys="other"), context)):
        with raises_code(PipelineError, "delta-schema"):
            other.check(table.frame([]), changed)

    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "part.parquet").write_text("")
    (tmp_path / "file").write_text("")
    for place in ("files", "file"):
        with raises_code(PipelineError, "delta-place"):
            delta(tmp_path / place).check(table.frame([]), context)


def test_a_table_that_somebody_else_changed_takes_the_batch_once_it_is_put_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = _table(spark, tmp_path, "append")
    table.write(0, [(1, "a")])
    others = spark.createDataFrame([("x",)], "id string").write.format("delta").mode("overwrite")
    others.option("overwriteSchema", "true").save(table.sink.location)
    for keys in ((), ("id",)):
        with raises_code(StreamFailed, "sink-table-changed"):
            replace(table, sink=delta(table.sink.path, keys=keys)).write(1, [(2, "b")])
    with raises_code(PipelineError, "delta-schema"):
        table.sink.check(table.frame([]), table.context)
    spark.sql(f"RESTORE TABLE {table_in_sql(table.sink.location)} TO VERSION AS OF 1")
    table.sink.check(table.frame([]), table.context)
    table.write(1, [(2, "b")])
    assert table.rows() == [(1, "a"), (2, "b")]

    # Delta would create a table with the rows of this batch only.
    folder = Path(table.sink.location)
    away = folder.rename(tmp_path / "away")
    with raises_code(StreamFailed, "sink-table-changed"):
        table.write(2, [(3, "c")])
    assert not folder.exists()
    away.rename(folder)
    table.write(2, [(3, "c")])
    assert table.rows() == [(1, "a"), (2, "b"), (3, "c")]


def test_a_full_disk_leaves_nothing_of_the_batch(spark: SparkSession) -> None:
    dice = random.Random(20240101)
    large: Rows = [(number, dice.randbytes(200).hex()) for number in range(20_000)]
    with small_disk(2) as disk:
        table = _table(spark, disk.folder, "append")
        table.write(0, [(1, "a")])
        with pytest.raises(Exception, match="No space left on device") as full:
            table.write(1, large)
        assert "No space left on device" in reason_of(full.value)
        assert table.rows() == [(1, "a")]
        assert table.output.last_written() == 0
        disk.grow(64)
        table.write(1, large)
        assert len(table.rows()) == 1 + len(large)
        assert table.output.last_written() == 1


def test_partitions_are_those_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    context = WriteContext(OWNER.stream_id, OWNER.stream, 1, "append", partition_by=("v",))
    table = Table(spark, tmp_path, delta(tmp_path / "t"), context)
    table.sink.check(table.frame([]), context)
    table.write(0, [(1, "a"), (2, "b")])
    assert sorted(path.name for path in (tmp_path / "t").glob("v=*")) == ["v=a", "v=b"]
    table.output.claim(OWNER)
    cut = table.output.cut_after(-1, {})
    assert (cut.rows, cut.batches) == (2, (0,))
    table.output.cut(cut, {}, LocalStore(tmp_path / "backup"))
    assert table.rows() == []
    assert table.output.last_written() == -1


@pytest.mark.parametrize("day", ["ö 1", "a b%*/'c"])
def test_partitions_whose_paths_the_library_spells_otherwise(day: str, spark: SparkSession, tmp_path: Path) -> None:
    """Spark would read a file that is removed under another spelling: refused before a plan, or exact."""
    context = WriteContext(OWNER.stream_id, OWNER.stream, 1, "append", partition_by=("v",))
    table = Table(spark, tmp_path, delta(tmp_path / "t"), context)
    table.output.claim(OWNER)
    table.sink.check(table.frame([]), context)
    for batch in range(3):
        table.write(batch, [(batch, day)])
    output, backup, whole = table.output, LocalStore(tmp_path / "backup"), [(batch, day) for batch in range(3)]
    if day.isascii():
        cut = output.cut_after(0, {})
        output.cut(cut, {}, backup)
        assert table.rows() == whole[:1]
        output.restore(cut, backup)
        assert table.rows() == whole
        return
    acts: list[Callable[[], object]] = [lambda: output.cut_after(0, {}), lambda: output.cut_after(-1, {})]
    output.stage("20260105T093000-1a2b3c", 0, {})
    swap = output.swap_of("20260105T093000-1a2b3c", OWNER.stream_id, 0)
    output.staged("20260105T093000-1a2b3c").claim(OWNER)
    acts.append(lambda: output.swap(swap, backup))
    for act in acts:
        with raises_code(Refused, "delta-path"):
            act()
    assert (table.rows(), output.last_written()) == (whole, 2)
