"""The upgrade in the demo: ``daily`` of weather.py with more columns, so with state of another schema."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def daily(measured: DataFrame) -> DataFrame:
    """One row for each station and day, with the extremes of the day."""
    days = measured.withWatermark("measured_at", "2 days").groupBy(F.window("measured_at", "1 day"), "station")
    aggregated = days.agg(
        F.count("*").alias("readings"),
        F.round(F.avg("temperature_f"), 2).alias("mean_temperature_f"),
        F.min("temperature_f").alias("lowest_temperature_f"),
        F.max("temperature_f").alias("highest_temperature_f"),
        F.sum("rain_inches").alias("rain_inches"),
    )
    return aggregated.select(
        F.col("window.start").alias("day"),
        "station",
        "readings",
        "mean_temperature_f",
        "lowest_temperature_f",
        "highest_temperature_f",
        "rain_inches",
    )
