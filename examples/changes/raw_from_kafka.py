"""``raw`` of weather.py for lines that come through a Kafka topic. The broker is named by ``WEATHER_BROKERS``."""

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def raw(spark: SparkSession) -> DataFrame:
    """Every line as it came, and where it came from."""
    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", os.environ["WEATHER_BROKERS"])
        .option("subscribe", "weather-readings")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 1450)
        .load()
    )
    came_from = F.concat_ws("-", "topic", "partition", "offset")
    # One file for each batch: the next stage takes one file at a time.
    return messages.select(F.col("value").cast("string").alias("line"), came_from.alias("came_from")).coalesce(1)
