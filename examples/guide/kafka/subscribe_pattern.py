"""All topics whose names match a pattern."""

import os

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("kafka")

SERVERS = os.environ.get("KAFKA_SERVERS", "localhost:9092")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/subscribe_pattern"))
def subscribe_pattern(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS)
    source = (
        source.option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 24)
        .option("subscribePattern", "readings-.*")
    )
    records = source.load()
    return records.selectExpr("CAST(value AS STRING) AS reading", "topic", "partition", "offset")
