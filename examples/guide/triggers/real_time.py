"""Real-time mode from a Kafka topic to another, in batches of 5 seconds: at-least-once. Spark 4.1 and later.

Kafka as the source; Kafka, foreach and the console as sinks; update mode.
"""

import os

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("triggers", connectors=["kafka"])

SERVERS = os.environ.get("KAFKA_SERVERS", "localhost:9092")
SINK = sw.sinks.kafka("readings-at-once", bootstrap_servers=SERVERS)


@pipeline.stream(sink=SINK, output_mode="update", trigger=sw.triggers.real_time("5 seconds"))
def real_time(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS)
    records = source.option("subscribe", "readings-1").option("startingOffsets", "earliest").load()
    return records.where("value IS NOT NULL").select("key", "value")
