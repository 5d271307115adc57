"""A micro-batch every half second, or as soon as the one before it has ended."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("triggers")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
EVERY = sw.triggers.processing_time("500 milliseconds")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/processing_time"), trigger=EVERY)
def processing_time(spark: SparkSession) -> DataFrame:
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
