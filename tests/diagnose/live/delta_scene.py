"""A stream that reads a Delta table in its folder: what is one file elsewhere is one version of the table."""

import shutil
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.diagnose.live.frame import SETTINGS, Scene
from tests.restart.small import SOURCE

DELTA = (
    *SETTINGS,
    "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions=1",
)
"""What a session needs that reads or writes Delta tables; a run of Slackwater sets it by itself, too."""
MINUTES = (0, 4, 9, 13)
DAY = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "page": pa.string(), "n": pa.int64()})
FAILS, GOES_ON = '.option("failOnDataLoss", "true")', '.option("failOnDataLoss", "false")'
FROM_TABLE = f"""
@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    return spark.readStream.format("delta").option("maxFilesPerTrigger", 1){FAILS}.load("table")
"""
TO_TABLE = f"""
def per_page(spark):
    return {SOURCE}

def write(batch, number):
    rows = batch.write.format("delta").mode("append")
    rows.option("txnAppId", "job").option("txnVersion", number).save("copies")
"""


class TableScene(Scene):
    def arrive(self, first: int, last: int) -> None:
        """The rows that would be files elsewhere, each as a version of the table."""
        for number in range(first, last):
            times = [DAY + timedelta(minutes=number * 15 + minute) for minute in MINUTES]
            rows = [{"ts": time, "page": "a", "n": number + 1} for time in times]
            write_deltalake(self.folder / "table", pa.Table.from_pylist(rows, SCHEMA), mode="append")

    def recreate(self) -> None:
        """Another table at the path has the rows of the old one, as a job leaves it that drops and fills a table."""
        table = self.folder / "table"
        rows = DeltaTable(table).to_pyarrow_table()
        shutil.rmtree(table)
        write_deltalake(table, rows)

    def clean_before(self, version: int) -> None:
        """Remove the entries of the log before a version, as its retention does after a checkpoint."""
        table = DeltaTable(self.folder / "table")
        table.create_checkpoint()
        for removed in range(version):
            (self.folder / "table" / "_delta_log" / f"{removed:020}.json").unlink()
