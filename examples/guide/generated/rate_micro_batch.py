"""The rate source per micro-batch: ten rows a batch, numbered from 0, with event times of their own."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("generated")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/rate_micro_batch"))
def rate_micro_batch(spark: SparkSession) -> DataFrame:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10)
    return rows.option("startTimestamp", 1767225600000).option("advanceMillisPerBatch", 60000).load()
