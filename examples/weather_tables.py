"""weather.py in its other form: the first stages write Delta tables, the last one a table of PostgreSQL.

    export WEATHER_DATABASE=postgresql://user@localhost/weather
    slackwater run weather_tables.py --until-caught-up

What is computed is that of weather.py next to this file, imported from there. ``slackwater demo --sink postgres`` runs
this file; with ``--source kafka`` its first stage is that of changes/raw_from_kafka.py.
"""

import os

import weather
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("weather_tables")

DATABASE = os.environ["WEATHER_DATABASE"]
TABLE = os.environ.get("WEATHER_TABLE", "daily_weather")


@pipeline.stream(name="sensor-raw-ingest", sink=sw.sinks.delta("out/raw"))
def raw(spark: SparkSession) -> DataFrame:
    """Every line as it arrived, and the file it arrived in."""
    return weather.raw(spark)


def stored(spark: SparkSession, context: sw.StreamContext, stage: str) -> DataFrame:
    """The Delta table of another stage, as a stream that takes one file at a time."""
    return spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(context.output(stage))


@pipeline.stream(name="sensor-deserialize", sink=sw.sinks.delta("out/readings"))
def readings(spark: SparkSession, context: sw.StreamContext) -> DataFrame:
    """The usable readings."""
    # One file for each batch: the next stage takes one file at a time.
    return weather.usable(weather.parsed(stored(spark, context, "sensor-raw-ingest"))).coalesce(1)


@pipeline.stream(name="sensor-deserialize-rejects", sink=sw.sinks.delta("out/rejects"))
def rejects(spark: SparkSession, context: sw.StreamContext) -> DataFrame:
    """The unusable lines: no line is dropped silently."""
    # Nothing depends on how these are cut into batches: each takes what there is.
    lines = spark.readStream.format("delta").load(context.output("sensor-raw-ingest"))
    return weather.unusable(weather.parsed(lines)).coalesce(1)


# A row is inserted once and never updated. A unique key would hide a row that is written twice; the batch's id, a
# column of the table, lets a rebuild cut batches.
@pipeline.stream(name="sensor-merge-gold", sink=sw.sinks.postgres(DATABASE, TABLE, create=True, keep_batch_id=True))
def gold(spark: SparkSession, context: sw.StreamContext) -> DataFrame:
    """The days of all stations."""
    return weather.daily(stored(spark, context, "sensor-deserialize"))
