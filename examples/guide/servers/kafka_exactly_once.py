"""A Kafka topic, exactly-once for consumers of committed records: each batch is one transaction."""

import os

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("servers")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
SERVERS = os.environ.get("KAFKA_SERVERS", "localhost:9092")
TOPIC = os.environ.get("KAFKA_TOPIC", "readings-out")


@pipeline.stream(sink=sw.sinks.kafka(f"{TOPIC}-once", bootstrap_servers=SERVERS, exactly_once=True))
def kafka_exactly_once(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.selectExpr("device AS key", "to_json(struct(*)) AS value")
