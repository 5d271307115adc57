"""A windowed aggregation of what a topic has."""

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("kafka")

SERVERS = os.environ.get("KAFKA_SERVERS", "localhost:9092")
READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/windows"))
def windows(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS)
    source = (
        source.option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 24)
        .option("subscribe", "readings-1")
    )
    records = source.load()
    readings = records.selectExpr(f"from_json(CAST(value AS STRING), '{READING}') AS reading").select("reading.*")
    marked = readings.withWatermark("at", "10 minutes")
    return marked.groupBy(F.window("at", "15 minutes"), "device").agg(F.sum("n").alias("n"))
