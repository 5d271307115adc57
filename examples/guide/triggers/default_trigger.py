"""No trigger: each micro-batch starts as soon as the one before it has ended."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("triggers")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/default_trigger"))
def default_trigger(spark: SparkSession) -> DataFrame:
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
