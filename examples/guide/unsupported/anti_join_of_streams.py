"""Refused: a left anti join of two streams. Instead: a left outer join, and a filter on the missing side."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

VIEW = "ad LONG, viewed_at TIMESTAMP"
CLICK = "clicked LONG, clicked_at TIMESTAMP"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/anti_join_of_streams"))
def anti_join_of_streams(spark: SparkSession) -> DataFrame:
    views = spark.readStream.schema(VIEW).json("views")
    clicks = spark.readStream.schema(CLICK).json("clicks")
    views, clicks = views.withWatermark("viewed_at", "5 minutes"), clicks.withWatermark("clicked_at", "5 minutes")
    return views.join(clicks, F.expr("ad = clicked AND viewed_at = clicked_at"), "left_anti")
