"""Partition discovery: the folder day=... becomes a column."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/partitions"))
def partitions(spark: SparkSession) -> DataFrame:
    schema = f"{READING}, day INT"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json("by_day")
