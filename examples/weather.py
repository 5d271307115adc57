"""Hourly readings of weather stations, in three stages: raw lines, readings, days.

Reads lines of JSON below ``landing/`` and writes below ``out/``, both in the working directory:

    slackwater run weather.py --until-caught-up

Every function returns a plain streaming DataFrame. Nothing in this file sets where to start reading, so nothing in it
changes for a restart elsewhere.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("weather")

RAW = "line STRING, came_from STRING"
# Decimals, because sums of doubles depend on the order of the rows, and a replay must compute the same days.
READING = """
    station STRING, measured_at TIMESTAMP, temperature_f DECIMAL(5, 2), humidity_percent DECIMAL(5, 2),
    wind_speed_mph DECIMAL(6, 2), rain_inches DECIMAL(5, 2), pressure_hpa DECIMAL(6, 1)
"""


@pipeline.stream(name="sensor-raw-ingest", sink=sw.sinks.files("parquet", "out/raw"))
def raw(spark: SparkSession) -> DataFrame:
    """Every line as it arrived, and the file it arrived in."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text("landing")
    came_from = F.col("_metadata.file_name")
    # One file for each batch: the next stage takes one file at a time.
    return lines.select(F.col("value").alias("line"), came_from.alias("came_from")).coalesce(1)


def stored_lines(spark: SparkSession, context: sw.StreamContext) -> DataFrame:
    """What the first stage wrote, as a stream."""
    stored = spark.readStream.schema(RAW).option("maxFilesPerTrigger", 1)
    return stored.parquet(context.output("sensor-raw-ingest"))


def parsed(lines: DataFrame) -> DataFrame:
    """Raw lines with their parsed readings, and the reason why a line is unusable (null: it is usable)."""
    reading = F.from_json("line", f"{READING}, damaged STRING", {"columnNameOfCorruptRecord": "damaged"})
    reason = (
        F.when(F.get_json_object("line", "$").isNull(), "not JSON")
        .when(F.col("reading.damaged").isNotNull(), "a value of the wrong type")
        .when(F.col("reading.station").isNull() | F.col("reading.measured_at").isNull(), "no station or no time")
        .when(F.col("reading.temperature_f").isNull(), "no temperature")
    )
    return lines.withColumn("reading", reading).withColumn("reason", reason)


def usable(lines: DataFrame) -> DataFrame:
    """The readings of the lines that have one."""
    return lines.where("reason IS NULL").select("reading.*").drop("damaged")


def unusable(lines: DataFrame) -> DataFrame:
    """The other lines, each with its reason."""
    return lines.where("reason IS NOT NULL").select("line", "came_from", "reason")


@pipeline.stream(name="sensor-deserialize", sink=sw.sinks.files("parquet", "out/readings"))
def readings(spark: SparkSession, context: sw.StreamContext) -> DataFrame:
    """The usable readings."""
    return usable(parsed(stored_lines(spark, context)))


@pipeline.stream(name="sensor-deserialize-rejects", sink=sw.sinks.files("parquet", "out/rejects"))
def rejects(spark: SparkSession, context: sw.StreamContext) -> DataFrame:
    """The unusable lines: no line is dropped silently."""
    return unusable(parsed(stored_lines(spark, context)))


def stored_readings(spark: SparkSession, context: sw.StreamContext) -> DataFrame:
    """What the second stage wrote, as a stream."""
    stored = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1)
    return stored.parquet(context.output("sensor-deserialize"))


def daily(measured: DataFrame) -> DataFrame:
    """One row for each station and day, once no later reading can change it."""
    days = measured.withWatermark("measured_at", "2 days").groupBy(F.window("measured_at", "1 day"), "station")
    aggregated = days.agg(
        F.count("*").alias("readings"),
        F.round(F.avg("temperature_f"), 1).alias("mean_temperature_f"),
    )
    return aggregated.select(F.col("window.start").alias("day"), "station", "readings", "mean_temperature_f")


@pipeline.stream(name="sensor-merge-gold", sink=sw.sinks.files("parquet", "out/gold"))
def gold(spark: SparkSession, context: sw.StreamContext) -> DataFrame:
    """The days of all stations."""
    return daily(stored_readings(spark, context))
