"""SQL on a temporary view of the stream."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/sql_on_view"))
def sql_on_view(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    readings.createOrReplaceTempView("readings")
    return spark.sql("SELECT device, at, n + 1 AS next FROM readings WHERE n < 8")
