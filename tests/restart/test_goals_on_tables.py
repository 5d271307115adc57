"""Resume, replay and reset of an aggregation into Delta and PostgreSQL tables: rows as of a stream that went on."""

from collections import Counter
from pathlib import Path

import psycopg
import pyarrow.parquet
import pytest

from tests.restart.scenario import SCHEMA
from tests.restart.test_goals_on_state import STORES, Goals, torn_commit
from tests.restart.test_other_state import FILES
from tests.sinks import delta_logs
from tests.support.postgres_server import PostgresServer

Sums = Counter[tuple[object, ...]]
pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(1200)]
TABLES = ("delta", "postgres")
PIPELINE = f"""
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("web")


def sums(spark):
    rows = spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json("landing")
    marked = rows.withWatermark("ts", "10 minutes").groupBy(F.window("ts", "30 minutes"), "page")
    return marked.agg(F.sum("n").alias("n")).select(F.unix_timestamp("window.start").alias("start"), "page", "n")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/files"))
def files(spark):
    return sums(spark)


@pipeline.stream(sink=sw.sinks.delta("out/delta"))
def delta(spark):
    return sums(spark)


@pipeline.stream(sink=sw.sinks.postgres("URL", "sums", create=True, keep_batch_id=True))
def postgres(spark):
    return sums(spark)
"""


class Tables(Goals):
    """A workspace with a stream for each kind of table, and one into files that nothing is done to."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder, STORES["hdfs"], FILES - 3, PIPELINE.replace("URL", url))
        self._url = url

    def rows_of_tables(self) -> list[Sums]:
        folder = self.output / "delta"
        files = [pyarrow.parquet.ParquetFile(folder / name).read() for name in delta_logs.live_files(folder)]
        found: Sums = Counter((row["start"], row["page"], row["n"]) for file in files for row in file.to_pylist())
        with psycopg.connect(self._url) as connection:
            rows: Sums = Counter(connection.execute("SELECT start, page, n FROM sums").fetchall())
        return [found, rows]

    def expected(self) -> Sums:
        table = pyarrow.parquet.read_table(sorted((self.output / "files").glob("*.parquet")))
        return Counter((row["start"], row["page"], row["n"]) for row in table.to_pylist())


def test_each_goal_ends_with_the_rows_of_a_stream_that_went_on(tmp_path: Path, postgres: PostgresServer) -> None:
    tables = Tables(tmp_path / "tables", postgres.url(postgres.new_database()))
    tables.caught_up()

    for name in TABLES:
        torn_commit(tables.checkpoint_of(name))
        tables.apply("resume", name)
        tables.apply("replay", name, "--from", "batch:3")
    assert all(rows < tables.expected() for rows in tables.rows_of_tables())
    tables.arrive()
    tables.caught_up()
    assert tables.rows_of_tables() == [tables.expected()] * 2

    for name in TABLES:
        tables.apply("reset", name, "--output", "swap", spark=True)
    assert tables.rows_of_tables() == [tables.expected()] * 2
    tables.arrive()
    tables.caught_up()
    assert tables.rows_of_tables() == [tables.expected()] * 2
