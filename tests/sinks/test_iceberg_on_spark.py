"""What the Iceberg sink does to a table, in one Spark session: repeated batches, late writers, merges, cuts, checks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from slackwater.core.errors import PipelineError, Refused, SlackwaterError, StreamFailed
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.sinks import IcebergSink, all_of, iceberg
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.iceberg.output import IcebergOutput
from slackwater.sinks.iceberg.writer import IcebergSparkTable, Publisher
from slackwater.storage.local import LocalStore
from tests.sinks import iceberg_tables
from tests.support.errors import raises_code
from tests.support.postgres_server import postgres_server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
OPERATION = "20260105T093000-1a2b3c"
SCHEMA = "id long, v string"
Rows = list[tuple[int | None, str]]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    secret = tmp_path_factory.mktemp("secret") / "password"
    secret.write_text("hidden\n")
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(tmp_path_factory.mktemp("lake")),
        "spark.sql.catalog.lake.jdbc.password": f"file:{secret}",
    }
    session = start_session(SessionOptions("iceberg", "local[2]", settings, ("iceberg", "postgresql")), lambda _: None)
    yield session
    end_session(session)


@dataclass
class Target:
    spark: SparkSession
    sink: IcebergSink
    context: WriteContext

    def frame(self, rows: Rows) -> DataFrame:
        return self.spark.createDataFrame(rows, SCHEMA).coalesce(1)

    def write(self, batch: int, rows: Rows, *, epoch: int = 1, planned: int = -1) -> None:
        """As a run with this epoch, which started when ``planned`` was planned."""
        context = replace(self.context, epoch=epoch, planned=planned)
        self.sink.batch_writer(context)(self.frame(rows), batch)

    def start(self, epoch: int) -> None:
        self.sink.check(self.frame([]), replace(self.context, epoch=epoch))

    @property
    def output(self) -> IcebergOutput:
        return IcebergOutput(self.sink.location)

    def rows(self) -> Rows:
        found = self.spark.read.format("iceberg").load(self.sink.location).select("id", "v").collect()
        return sorted(((row["id"], row["v"]) for row in found), key=repr)


def _target(spark: SparkSession, table: Path | str, mode: str = "append", *keys: str) -> Target:
    target = Target(spark, iceberg(table, keys=keys), WriteContext(OWNER.stream_id, OWNER.stream, 1, mode))
    if isinstance(table, Path):
        target.output.claim(OWNER)
    target.start(1)
    return target


def _fails(code: str, kind: type[SlackwaterError], call: object, *arguments: object, **named: object) -> None:
    assert callable(call)
    with raises_code(kind, code):
        call(*arguments, **named)


MODES = [
    ("append", (), [(1, "a"), (2, "b"), (2, "c"), (3, "d"), (None, "n")]),
    ("update", ("id",), [(1, "a"), (2, "c"), (3, "d"), (None, "n")]),
    pytest.param("complete", (), [(2, "c"), (3, "d"), (None, "n")], marks=pytest.mark.thorough),
]
IN_CATALOGS = [pytest.param(*MODES[0], marks=pytest.mark.thorough), *MODES[1:]]
ON_A_BRANCH = [MODES[0], pytest.param(*MODES[1], marks=pytest.mark.thorough), MODES[2]]
FIRST: Rows = [(1, "a"), (2, "b")]
SECOND: Rows = [(2, "c"), (3, "d"), (None, "n")]


@pytest.mark.parametrize(("mode", "keys", "final"), IN_CATALOGS)
def test_batches_repeated_cut_and_undone(
    mode: str, keys: tuple[str, ...], final: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    target = _target(spark, tmp_path / "a `table`", mode, *keys)
    assert target.output.last_written() == -1
    target.write(0, FIRST)
    target.write(1, [] if mode != "complete" else FIRST)
    target.write(2, SECOND)
    assert target.rows() == sorted(final, key=repr)
    for batch, rows in ((2, SECOND), (1, FIRST)):
        target.write(batch, rows, planned=2)
        assert target.rows() == sorted(final, key=repr)
        assert target.output.last_written() == 2
    _fails("iceberg-ahead", Refused, target.write, 2, SECOND)
    assert target.output.damage("all") == ()

    backup = LocalStore(tmp_path / "backup")
    cut = target.output.cut_after(1, {})
    assert (cut.batches, cut.rows) == ((2,), 3 if mode == "append" else None)
    target.output.cut(cut, {}, backup)
    assert target.output.last_written() == 1
    assert target.rows() == FIRST
    target.output.restore(cut, backup)
    assert target.rows() == sorted(final, key=repr)
    backup.delete("iceberg.json")
    cut = target.output.cut_after(1, {})
    target.output.cut(cut, {}, backup)

    _fails("sink-fenced", Refused, target.write, 2, SECOND, planned=2)
    target.start(5)
    target.write(2, SECOND, epoch=5, planned=2)
    assert target.rows() == sorted(final, key=repr), "after a cut the batch is not skipped"
    assert target.output.last_written() == 2
    fields = iceberg_tables.metadata(Path(target.sink.location))
    shown = next(one for one in fields["snapshots"] if one["snapshot-id"] == fields["current-snapshot-id"])
    assert shown["summary"]["wap.id"].startswith(f"slackwater:{OWNER.stream_id}:5:2:")


@pytest.mark.parametrize(("mode", "keys", "final"), ON_A_BRANCH)
def test_built_on_a_branch_swapped_and_undone(
    mode: str, keys: tuple[str, ...], final: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    target = _target(spark, tmp_path / "a `table`", mode, *keys)
    old: Rows = [(7, "old")]
    target.write(0, old)
    backup = LocalStore(tmp_path / "backup")
    target.output.stage(OPERATION, -1, {})
    staged = replace(target, sink=target.sink.staged(OPERATION))
    staged.start(2)
    staged.write(0, FIRST, epoch=2)
    staged.write(1, [] if mode != "complete" else FIRST, epoch=2)
    staged.write(2, SECOND, epoch=2)
    staged.write(2, SECOND, epoch=2, planned=2)
    _fails("sink-fenced", Refused, staged.write, 3, SECOND)
    assert (target.rows(), target.output.last_written()) == (old, 0)
    assert target.output.staged(OPERATION).last_written() == 2

    swap = target.output.swap_of(OPERATION, OWNER.stream_id)
    late = Publisher(spark, target.sink.name.sql, target.context)
    target.output.swap(swap, backup)
    assert (target.rows(), target.output.last_written()) == (sorted(final, key=repr), 2)
    _fails("staged-absent", Refused, staged.write, 3, SECOND, epoch=2)
    _fails("sink-fenced", Refused, late.refresh)
    target.start(3)
    target.write(2, SECOND, epoch=3, planned=2)
    target.write(3, [(9, "on")] if mode != "complete" else [*SECOND, (9, "on")], epoch=3)
    assert target.rows() == sorted([*final, (9, "on")], key=repr)
    catalog, name = target.sink.name.sql.split(".", 1)
    expired = f"older_than => TIMESTAMP '2100-01-01', retain_last => 1, table => '{name}'"
    if mode == "append":
        spark.sql(f"CALL {catalog}.system.expire_snapshots({expired})")

    target.output.swap_back(swap, backup)
    assert (target.rows(), target.output.last_written()) == (old, 0)
    assert target.output.staged(OPERATION).last_written() == 3
    target.output.discard(OPERATION, "staged")
    target.start(5)
    target.write(1, [(8, "new")] if mode != "complete" else [*old, (8, "new")], epoch=5)
    assert target.rows() == [*old, (8, "new")]
    assert target.output.damage("all") == ()


@pytest.mark.parametrize("version", [1, pytest.param(3, marks=pytest.mark.thorough)])
def test_built_again_from_an_older_batch(version: int, spark: SparkSession, tmp_path: Path) -> None:
    """In other versions of the format; from before all batches once more, which is an empty snapshot."""
    name = iceberg(tmp_path / "t").name
    name.register(spark)
    spark.sql(f"CREATE TABLE {name.sql} ({SCHEMA}) USING iceberg TBLPROPERTIES ('format-version' = '{version}')")
    target = _target(spark, tmp_path / "t")
    for batch in range(3):
        target.write(batch, [(batch, "a")])
    for epoch, after in ((2, -1), (4, 0)):
        operation, expected = f"{OPERATION}-{epoch}", target.rows()[: after + 1]
        target.output.stage(operation, after, {})
        staged = replace(target, sink=target.sink.staged(operation))
        staged.start(epoch)
        staged.write(after + 1, [(after + 1, "b")], epoch=epoch)
        swap, backup = target.output.swap_of(operation, OWNER.stream_id), LocalStore(tmp_path / operation)
        target.output.swap(swap, backup)
        assert target.rows() == [*expected, (after + 1, "b")]
        target.output.discard(operation, "replaced")
        target.start(epoch + 1)
        for batch in range(after + 2, 3):
            target.write(batch, [(batch, "c")], epoch=epoch + 1)
    assert target.rows() == [(0, "b"), (1, "b"), (2, "c")]
    cut = target.output.cut_after(0, {})
    target.output.cut(cut, {}, LocalStore(tmp_path / "cut"))
    assert target.rows() == [(0, "b")], "batches that were swapped in can be cut"
    assert target.output.damage("all") == ()


def test_as_one_of_several_outputs_it_skips_a_batch_that_it_has(spark: SparkSession, tmp_path: Path) -> None:
    first, second = (_target(spark, tmp_path / name) for name in ("first", "second"))
    context = replace(first.context, planned=0)
    first.write(0, FIRST)
    both = all_of(first.sink, second.sink)
    for member in both.members:
        member.batch_writer(context)(first.frame(FIRST), 0)
    assert (first.rows(), second.rows()) == (FIRST, FIRST)
    assert open_output(both.identity()).last_written() == 0


def test_an_older_run_that_is_woken_late_publishes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """It stops before staging, or between staging and publishing; also where the table is back at its snapshot."""
    target = _target(spark, tmp_path / "t")
    target.write(0, FIRST)
    late = Publisher(spark, target.sink.name.sql, target.context)
    before = late.refresh()
    IcebergSparkTable(target.sink).stage(target.context, target.frame(SECOND), 1, "slackwater:5f0e:1:1:late")
    assert target.rows() == FIRST, "what is staged is not visible"
    assert target.output.last_written() == 0

    target.start(2)
    target.write(1, SECOND, epoch=2)
    whole = target.rows()
    _fails("sink-fenced", Refused, late.publish, before, 1, "slackwater:5f0e:1:1:late", has_rows=True)
    _fails("sink-fenced", Refused, target.write, 1, SECOND, epoch=1)
    assert (target.rows(), target.output.last_written()) == (whole, 1)

    target.output.cut(target.output.cut_after(0, {}), {}, LocalStore(tmp_path / "backup"))
    _fails("sink-fenced", Refused, late.publish, before, 1, "slackwater:5f0e:1:1:late", has_rows=True)
    assert (target.rows(), target.output.last_written()) == (FIRST, 0)


def test_a_run_that_died_between_staging_and_publishing(spark: SparkSession, tmp_path: Path) -> None:
    target = _target(spark, tmp_path / "t")
    target.write(0, FIRST)
    IcebergSparkTable(target.sink).stage(target.context, target.frame(SECOND), 1, "slackwater:5f0e:1:1:dead")
    target.start(2)
    assert (target.rows(), target.output.last_written()) == (FIRST, 0)
    target.write(1, SECOND, epoch=2, planned=1)
    assert target.rows() == sorted([*FIRST, *SECOND], key=repr)


def test_another_writer_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """Its rows stay: between two batches they count, within one the batch is run again, and a cut is refused."""
    target = _target(spark, tmp_path / "t")
    target.write(0, FIRST)
    other = target.frame([(9, "other")])
    other.writeTo(target.sink.name.sql).append()
    target.write(1, SECOND)
    assert target.rows() == sorted([*FIRST, (9, "other"), *SECOND], key=repr)

    publisher = Publisher(spark, target.sink.name.sql, target.context)
    before = publisher.refresh()
    IcebergSparkTable(target.sink).stage(target.context, target.frame([(4, "e")]), 2, "slackwater:5f0e:1:2:x")
    other.writeTo(target.sink.name.sql).append()
    _fails("iceberg-conflict", StreamFailed, publisher.publish, before, 2, "slackwater:5f0e:1:2:x", has_rows=True)
    assert target.output.last_written() == 1
    target.write(2, [(4, "e")], planned=2)
    assert target.rows().count((4, "e")) == 1
    _fails("sink-uncuttable", Refused, target.output.cut_after, 0, {})
    assert target.output.cut_after(1, {}).rows == 1
    stranger = replace(target.context, stream_id="other")
    _fails("sink-owned", Refused, target.sink.check, target.frame([]), stranger)


def test_maintenance_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    target = _target(spark, tmp_path / "t")
    for batch in range(6):
        target.write(batch, [(batch, "x")])
    catalog, name = target.sink.name.sql.split(".", 1)
    name = name.strip("`")
    spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    assert target.output.last_written() == 5
    target.output.cut(target.output.cut_after(2, {}), {}, LocalStore(tmp_path / "backup"))
    assert target.rows() == [(batch, "x") for batch in range(3)]
    target.start(7)
    target.write(3, [(30, "y")], epoch=7)

    spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    expired = f"table => '{name}', older_than => TIMESTAMP '2100-01-01', retain_last => 1"
    spark.sql(f"CALL {catalog}.system.expire_snapshots({expired})")
    assert len(iceberg_tables.metadata(tmp_path / "t")["snapshots"]) == 1
    assert target.output.last_written() == 3
    target.write(3, [(30, "y")], epoch=7, planned=3)
    target.write(4, [(40, "y")], epoch=7)
    assert target.rows() == [*((batch, "x") for batch in range(3)), (30, "y"), (40, "y")]
    _fails("iceberg-expired", Refused, target.output.cut_after, 1, {})
    assert target.output.damage("all") == ()


@pytest.mark.parametrize("keys", [pytest.param("", marks=pytest.mark.thorough), "id"], ids=["append", "merge"])
def test_a_staged_snapshot_that_expires_before_it_is_published(spark: SparkSession, tmp_path: Path, keys: str) -> None:
    target = _target(spark, tmp_path / "t", *(("update", keys) if keys else ()))
    target.write(0, [])
    target.write(1, FIRST)
    catalog, name = target.sink.name.sql.split(".", 1)
    expired = f"table => '{name.strip('`')}', older_than => TIMESTAMP '2100-01-01', retain_last => 1"

    class Expiring(IcebergSparkTable):
        def stage(self, context: WriteContext, frame: DataFrame, batch: int, staged: str) -> bool:
            has_rows = super().stage(context, frame, batch, staged)
            spark.sql(f"CALL {catalog}.system.expire_snapshots({expired})")
            return has_rows

    unlucky = Expiring(target.sink)
    _fails("iceberg-conflict", StreamFailed, unlucky.write, target.context, target.frame([(7, "z")]), 2)
    assert (target.rows(), target.output.last_written()) == (FIRST, 1)
    target.write(2, [(7, "z")], planned=2)
    assert target.rows() == sorted([*FIRST, (7, "z")], key=repr)


def test_two_rows_with_one_key_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    target = _target(spark, tmp_path / "t", "update", "id")
    _fails("merge-keys", StreamFailed, target.write, 0, [(1, "a"), (1, "b")])
    assert (target.rows(), target.output.last_written()) == ([], -1)


def test_what_a_table_does_not_accept(spark: SparkSession, tmp_path: Path) -> None:
    target = _target(spark, tmp_path / "t")
    context, sink = target.context, target.sink
    for schema in ("id string, v string", "id long, v string, w int", "id long"):
        _fails("iceberg-schema", PipelineError, sink.check, spark.createDataFrame([], schema), context)
    sink.check(spark.createDataFrame([], "ID long, v string"), context)
    for other, changed in ((sink, replace(context, partition_by=("v",))), (iceberg(sink.path, keys="other"), context)):
        _fails("iceberg-schema", PipelineError, other.check, target.frame([]), changed)

    for place in ("files", "catalog/metadata"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "files" / "part.parquet").write_text("")
    (tmp_path / "catalog" / "metadata" / "00001-5b2f.metadata.json").write_text("{}")
    (tmp_path / "file").write_text("")
    for place in ("files", "catalog", "file"):
        _fails("iceberg-place", PipelineError, iceberg(tmp_path / place).check, target.frame([]), context)
    unknown = spark.createDataFrame([], "a interval day to second")
    _fails("iceberg-create", PipelineError, iceberg(tmp_path / "new").check, unknown, context)
    _fails("iceberg-catalog", PipelineError, iceberg("nosuch.db.t").check, target.frame([]), context)
    spark.conf.set("spark.sql.catalog.broken", "org.apache.iceberg.spark.SparkCatalog")
    _fails("iceberg-unreachable", StreamFailed, iceberg("broken.db.t").check, target.frame([]), context)
    _fails("iceberg-store", PipelineError, iceberg("s3://bucket/table").create_output, target.frame([]), ())


def test_types_that_iceberg_stores_as_others(spark: SparkSession, tmp_path: Path) -> None:
    sink = iceberg(tmp_path / "t")
    frame = spark.sql("SELECT CAST(1 AS tinyint) a, CAST(2 AS smallint) b, named_struct('c', CAST(3 AS short)) s")
    for _ in range(2):
        sink.check(frame, WriteContext(OWNER.stream_id, OWNER.stream, 1, "append"))


def test_partitions_are_those_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    context = WriteContext(OWNER.stream_id, OWNER.stream, 1, "append", partition_by=("v",))
    target = Target(spark, iceberg(tmp_path / "t", **{"write-format": "orc"}), context)
    target.output.claim(OWNER)
    target.start(1)
    target.write(0, [(1, "a"), (2, "b")])
    assert sorted(path.name for path in (tmp_path / "t" / "data").glob("v=*")) == ["v=a", "v=b"]
    assert all(name.endswith(".orc") for name in target.output.cut_after(-1, {}).files)
    cut = target.output.cut_after(-1, {})
    assert (cut.rows, cut.batches) == (2, (0,))
    target.output.cut(cut, {}, LocalStore(tmp_path / "backup"))
    assert (target.rows(), target.output.last_written()) == ([], -1)


@pytest.fixture(scope="module")
def jdbc(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlCatalog]:
    """A JDBC catalog on a real PostgreSQL: ``pg`` in Spark, and the same as pyiceberg reads it, without Spark."""
    warehouse = str(tmp_path_factory.mktemp("pg"))
    with postgres_server(tcp=True) as server:
        url = server.url(server.new_database())
        parts = urlsplit(url)
        settings = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "jdbc",
            ".uri": f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}",
            ".jdbc.user": parts.username,
            ".warehouse": warehouse,
        }
        for key, value in settings.items():
            spark.conf.set(f"spark.sql.catalog.pg{key}", str(value))
        with closing(SqlCatalog("pg", uri=url.replace("postgresql:", "postgresql+psycopg:"))) as catalog:
            yield catalog


def test_the_session_reads_the_secret_of_a_catalog(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.catalog.lake.jdbc.password") == "hidden"


@pytest.mark.thorough
@pytest.mark.parametrize(("mode", "keys", "final"), IN_CATALOGS)
def test_a_table_of_a_hadoop_catalog(mode: str, keys: tuple[str, ...], final: Rows, spark: SparkSession) -> None:
    _check_catalog(spark, "lake", mode, keys, final)


@pytest.mark.parametrize(("mode", "keys", "final"), IN_CATALOGS[:2])
def test_a_table_of_a_jdbc_catalog(
    mode: str, keys: tuple[str, ...], final: Rows, spark: SparkSession, jdbc: SqlCatalog
) -> None:
    _check_catalog(spark, "pg", mode, keys, final)
    table = jdbc.load_table(("gold", mode))
    shown = sorted(((row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist()), key=repr)
    assert shown == sorted(final, key=repr)
    assert json.loads(table.properties["slackwater.written"])["batch"] == 2


def _check_catalog(spark: SparkSession, catalog: str, mode: str, keys: tuple[str, ...], final: Rows) -> None:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.gold")
    target = _target(spark, f"{catalog}.gold.{mode}", mode, *keys)
    target.write(0, FIRST)
    IcebergSparkTable(target.sink).stage(target.context, target.frame(SECOND), 1, "slackwater:5f0e:1:1:dead")
    target.start(2)
    _fails("sink-fenced", Refused, target.write, 1, SECOND)
    target.write(1, SECOND, epoch=2, planned=1)
    target.write(1, SECOND, epoch=2, planned=1)
    found = spark.table(target.sink.table).select("id", "v").collect()
    assert sorted(((row["id"], row["v"]) for row in found), key=repr) == sorted(final, key=repr)
    _fails("iceberg-ahead", Refused, target.write, 0, FIRST, epoch=2)
    target.write(2, [], epoch=2)
    stranger = replace(target.context, stream_id="other")
    _fails("sink-owned", Refused, target.sink.check, target.frame([]), stranger)
