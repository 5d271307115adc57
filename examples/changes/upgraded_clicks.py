"""The upgrade in the tutorial: ``per_page`` of clicks.py with another aggregate, so with state of another schema."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def per_page(spark: SparkSession) -> DataFrame:
    clicks = spark.readStream.schema("page STRING, clicked_at TIMESTAMP").option("maxFilesPerTrigger", 1).json("clicks")
    minutes = clicks.withWatermark("clicked_at", "10 minutes").groupBy(F.window("clicked_at", "1 minute"), "page")
    counted = minutes.agg(F.count("*").alias("clicks"), F.max("clicked_at").alias("last"))
    return counted.select("window.start", "page", "clicks", "last")
