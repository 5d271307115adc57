"""Refused: a join of two streams in update mode. Instead: append mode."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

VIEW = "ad LONG, viewed_at TIMESTAMP"
CLICK = "clicked LONG, clicked_at TIMESTAMP"


@pipeline.stream(sink=sw.sinks.console(), output_mode="update")
def join_in_update_mode(spark: SparkSession) -> DataFrame:
    views = spark.readStream.schema(VIEW).json("views")
    clicks = spark.readStream.schema(CLICK).json("clicks")
    views, clicks = views.withWatermark("viewed_at", "10 minutes"), clicks.withWatermark("clicked_at", "5 minutes")
    return views.join(
        clicks, F.expr("ad = clicked AND clicked_at BETWEEN viewed_at AND viewed_at + INTERVAL 20 MINUTES")
    )
