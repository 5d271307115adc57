"""Update mode without an aggregation: the same rows as append mode."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("modes")

VIEW = "ad LONG, viewed_at TIMESTAMP"


@pipeline.stream(sink=sw.sinks.delta("out/update_stateless", keys=["ad"]), output_mode="update")
def update_stateless(spark: SparkSession) -> DataFrame:
    views = spark.readStream.schema(VIEW).option("maxFilesPerTrigger", 1).json("views")
    return views.selectExpr("ad", "viewed_at")
