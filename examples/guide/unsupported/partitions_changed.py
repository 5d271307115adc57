"""Refused: partition columns that change, here half=... below day=... in later files. Instead: a folder for each."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/partitions_changed"))
def partitions_changed(spark: SparkSession) -> DataFrame:
    schema = f"{READING}, day INT"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json("by_day_and_half")
