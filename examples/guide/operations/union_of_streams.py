"""The rows of two streams."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/union_of_streams"))
def union_of_streams(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    views = spark.readStream.schema("ad LONG, viewed_at TIMESTAMP").option("maxFilesPerTrigger", 1).json("views")
    return readings.selectExpr("device AS what", "at").union(
        views.selectExpr("CAST(ad AS STRING) AS what", "viewed_at")
    )
