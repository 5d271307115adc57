"""Clicks per page and minute, from files of JSON lines below ``clicks/`` to Parquet below ``out/per_page``."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("clicks")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/per_page"))
def per_page(spark: SparkSession) -> DataFrame:
    clicks = spark.readStream.schema("page STRING, clicked_at TIMESTAMP").option("maxFilesPerTrigger", 1).json("clicks")
    minutes = clicks.withWatermark("clicked_at", "10 minutes").groupBy(F.window("clicked_at", "1 minute"), "page")
    return minutes.agg(F.count("*").alias("clicks")).select("window.start", "page", "clicks")
