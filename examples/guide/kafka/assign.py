"""Some partitions of a topic."""

import os

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("kafka")

SERVERS = os.environ.get("KAFKA_SERVERS", "localhost:9092")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/assign"))
def assign(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS)
    source = (
        source.option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 16)
        .option("assign", '{"readings-1": [0]}')
    )
    records = source.load()
    return records.selectExpr("CAST(value AS STRING) AS reading", "topic", "partition", "offset")
