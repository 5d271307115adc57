"""Outputs staged and swapped by a real Spark: one query writes the output, another replaces it and continues."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow.parquet
import pytest

import slackwater as sw
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.sinks.common.contract import Output
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.files.manifest import Manifest
from slackwater.sinks.files.manifest_swap import entries_of, switch
from slackwater.storage.local import LocalStore
from tests.sinks import delta_logs
from tests.sinks.manifests import MANIFEST, listed_files
from tests.support.postgres_server import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
OPERATION = "20260105T093000-1a2b3c"
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
CONTEXT = WriteContext(OWNER.stream_id, OWNER.stream, 1, "append")
Ids = list[int]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        # The manifest of three batches has a compacted entry.
        "spark.sql.streaming.fileSink.log.compactInterval": "2",
    }
    session = start_session(SessionOptions("swap", "local[2]", settings, ("delta",)), lambda _: None)
    yield session
    end_session(session)


@dataclass
class Stream:
    """A query that reads numbers and writes them, ``added`` to each, by its own checkpoint."""

    spark: SparkSession
    folder: Path
    sink: Any
    epoch: int = 0
    files: int = 0
    day: str = "ö"

    @property
    def output(self) -> Output:
        return open_output(self.sink.identity())

    def add_files(self, count: int) -> None:
        """Files of one number, each of which becomes a batch."""
        (self.folder / "in").mkdir(exist_ok=True)
        for number in range(self.files, self.files + count):
            (self.folder / "in" / f"{number}.json").write_text(
                json.dumps({"id": number, "day": f"{self.day} {number % 2}"})
            )
        self.files += count

    def run(self, sink: Any, checkpoint: str, added: int) -> None:
        """Run until all files were read, as the next run of the stream."""
        from pyspark.sql import functions as F  # noqa: PLC0415 - heavy

        self.epoch += 1
        partitions = ("day",) if sink.kind != "postgres" else ()
        context = replace(CONTEXT, epoch=self.epoch, partition_by=partitions)
        source = self.spark.readStream.schema("id long, day string").option("maxFilesPerTrigger", 1)
        frame = source.json(str(self.folder / "in")).select((F.col("id") + added).alias("id"), "day")
        open_output(sink.identity()).claim(OWNER)
        sink.check(frame, context)
        writer = frame.writeStream.option("checkpointLocation", str(self.folder / checkpoint))
        writer = writer.partitionBy(*partitions) if sink.kind == "files" else writer
        sink.attach(writer.trigger(availableNow=True), context).start().awaitTermination()


def _scenario(
    stream: Stream, by_spark: Callable[[], Ids], by_others: Callable[[], Ids], held: Callable[[], Any]
) -> None:
    stream.add_files(3)
    stream.run(stream.sink, "first", 0)
    before = held()
    stream.output.stage(OPERATION, -1, {})
    stream.add_files(1)
    stream.run(stream.sink.staged(OPERATION), "second", 100)
    assert (by_spark(), by_others()) == ([0, 1, 2], [0, 1, 2])

    swap, backup = stream.output.swap_of(OPERATION, OWNER.stream_id), LocalStore(stream.folder / "backup")
    assert swap.replaced == 2
    stream.output.swap(swap, backup)
    assert (by_spark(), by_others()) == ([100, 101, 102, 103], [100, 101, 102, 103])

    stream.add_files(2)
    stream.run(stream.sink, "second", 100)
    assert (by_spark(), by_others()) == ([100, 101, 102, 103, 104, 105],) * 2
    output = open_output(stream.sink.identity())
    assert (output.last_written(), output.damage("all")) == (5, ())

    stream.output.swap_back(swap, backup)
    assert held() == before
    assert (by_spark(), by_others()) == ([0, 1, 2], [0, 1, 2])
    stream.run(stream.sink, "first", 0)
    assert (by_spark(), by_others()) == ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5])
    assert output.damage("all") == ()


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "an out"
    stream = Stream(spark, tmp_path, sw.sinks.files("parquet", out))

    def by_spark() -> Ids:
        return sorted(row["id"] for row in spark.read.parquet(str(out)).collect())

    def by_pyarrow() -> Ids:
        assert sorted(listed_files(out)) == sorted(out.glob("day=*/*.parquet")), "readers by glob see the same"
        return sorted(pyarrow.parquet.read_table(out).column("id").to_pylist())

    def held() -> dict[str, bytes]:
        return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}

    _scenario(stream, by_spark, by_pyarrow, held)


@pytest.mark.parametrize(("old", "new"), [(3, 4), (6, 1), (2, 7)])
def test_each_step_of_a_switched_manifest_is_read_as_a_whole(
    spark: SparkSession, tmp_path: Path, old: int, new: int
) -> None:
    """As on stores that cannot exchange directories."""
    parts = []
    for name, count, added in (("old", old, 0), ("new", new, 100)):
        stream = Stream(spark, tmp_path / name, sw.sinks.files("parquet", tmp_path / name / "out"))
        stream.folder.mkdir()
        stream.add_files(count)
        stream.run(stream.sink, "checkpoint", added)
        parts.append([number + added for number in range(count)])
    store = Recording(tmp_path / "old" / "out", tmp_path / "steps")
    switch(store, entries_of(Manifest(LocalStore(tmp_path / "new" / "out"))))
    found = [_ids(spark, step) for step in sorted((tmp_path / "steps").iterdir())]
    assert (found[0], found[-1]) == tuple(parts)
    assert [ids for before, ids in itertools.pairwise(found) if before != ids] == [parts[1]]


class Recording(LocalStore):
    """Keeps a copy of the manifest after each change."""

    def __init__(self, root: Path, copies: Path) -> None:
        super().__init__(root)
        self._manifest, self._copies = root / MANIFEST, copies

    def write(self, path: str, data: bytes) -> None:
        super().write(path, data)
        self._copy()

    def delete(self, path: str) -> None:
        super().delete(path)
        self._copy()

    def _copy(self) -> None:
        number = len(list(self._copies.iterdir())) if self._copies.exists() else 0
        shutil.copytree(self._manifest, self._copies / f"{number:03}" / MANIFEST)


def _ids(spark: SparkSession, output: Path) -> Ids:
    return sorted(row["id"] for row in spark.read.parquet(str(output)).collect())


def test_delta(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "an out"
    # Beyond ASCII a swap is refused: tests/sinks/test_delta_on_spark.py.
    stream = Stream(spark, tmp_path, sw.sinks.delta(out), day="a b")

    def by_spark() -> Ids:
        return sorted(row["id"] for row in spark.read.format("delta").load(str(out)).collect())

    def by_pyarrow() -> Ids:
        found: Ids = []
        for name in delta_logs.live_files(out):
            found += pyarrow.parquet.ParquetFile(out / name).read().column("id").to_pylist()
        return sorted(found)

    _scenario(stream, by_spark, by_pyarrow, lambda: delta_logs.live_files(out))


def test_postgres(spark: SparkSession, tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.url(postgres.new_database())
    stream = Stream(spark, tmp_path, sw.sinks.postgres(url, "out", create=True))

    def by_sql(columns: str = "id") -> list[Any]:
        with psycopg.connect(url) as connection:
            rows = connection.execute(f"SELECT {columns} FROM out ORDER BY id".encode()).fetchall()
            return [row[0] for row in rows] if columns == "id" else rows

    _scenario(stream, by_sql, by_sql, lambda: by_sql("ctid, xmin, id, day"))
