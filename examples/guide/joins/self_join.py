"""A stream joined with itself: readings of heat and light of one device within 2 minutes. Each side is a source."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("joins")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


def readings_of(spark: SparkSession, kind: str) -> DataFrame:
    """The readings of a kind."""
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.withWatermark("at", "10 minutes").where(F.col("kind") == kind)


@pipeline.stream(sink=sw.sinks.files("parquet", "out/self_join"))
def self_join(spark: SparkSession) -> DataFrame:
    heat = readings_of(spark, "heat").selectExpr("at AS heat_at", "device", "n AS heat")
    light = readings_of(spark, "light").selectExpr("at AS light_at", "device AS other", "n AS light")
    near = "device = other AND light_at BETWEEN heat_at - INTERVAL 2 MINUTES AND heat_at + INTERVAL 2 MINUTES"
    return heat.join(light, F.expr(near))
