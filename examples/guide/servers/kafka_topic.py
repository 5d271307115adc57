"""Spark's Kafka sink: at-least-once. The records of an interrupted batch are there twice."""

import os

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("servers", connectors=["kafka"])

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
SERVERS = os.environ.get("KAFKA_SERVERS", "localhost:9092")
TOPIC = os.environ.get("KAFKA_TOPIC", "readings-out")


@pipeline.stream(sink=sw.sinks.kafka(f"{TOPIC}-plain", bootstrap_servers=SERVERS))
def kafka_topic(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.selectExpr("device AS key", "to_json(struct(*)) AS value")
