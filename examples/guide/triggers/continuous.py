"""Continuous processing with a checkpoint each second, from a Kafka topic to another: at-least-once.

Selections, projections and filters only; Kafka and the rate source; Kafka, the console and memory as sinks.
"""

import os

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("triggers", connectors=["kafka"])

SERVERS = os.environ.get("KAFKA_SERVERS", "localhost:9092")
SINK = sw.sinks.kafka("readings-copied", bootstrap_servers=SERVERS)


@pipeline.stream(sink=SINK, trigger=sw.triggers.continuous("1 second"))
def continuous(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS)
    records = source.option("subscribe", "readings-1").option("startingOffsets", "earliest").load()
    return records.where("value IS NOT NULL").select("key", "value")
