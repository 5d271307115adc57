"""adopted_queries.py: two queries as a user writes them, in plain PySpark; and their code as a pipeline file.

``adopted_queries.py run FOLDER`` starts them with ``slackwater.watch``, until it is killed. ``finish FOLDER`` starts
them without Slackwater until they have caught up, and next to them one that was never interrupted.
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import slackwater as sw

NAMES = ("lost_state", "torn_commit")

pipeline = sw.Pipeline("mine")


def counts(spark: SparkSession, folder: Path) -> DataFrame:
    """The user's query: clicks per page and five minutes."""
    clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(str(folder))
    windows = clicks.withWatermark("at", "10 minutes").groupBy(F.window("at", "5 minutes"), "page").count()
    return windows.select(F.col("window.start").cast("long").alias("start"), "page", "count")


@pipeline.stream(sink=sw.sinks.noop())
def lost_state(spark: SparkSession) -> DataFrame:
    return counts(spark, Path(__file__).parent / "in")


def start(spark: SparkSession, folder: Path, name: str, *, to_the_end: bool) -> StreamingQuery:
    writer = counts(spark, folder / "in").writeStream.queryName(name).format("json")
    writer = writer.option("path", str(folder / "out" / name))
    writer = writer.option("checkpointLocation", str(folder / "checkpoints" / name))
    return (writer.trigger(availableNow=True) if to_the_end else writer).start()


def main(what: str, folder: Path) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    if what == "run":
        sw.watch(spark, ledger=folder / ".slackwater" / "ledger.db")
    names = NAMES if what == "run" else (*NAMES, "never_interrupted")
    for query in [start(spark, folder, name, to_the_end=what == "finish") for name in names]:
        query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
