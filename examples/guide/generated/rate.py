"""The rate source: ten rows a second, numbered from 0, for trying things out."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("generated")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/rate"))
def rate(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", 10).load()
