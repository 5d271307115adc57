"""Refused: an outer join of two streams without watermarks: Spark could never emit a row without a match."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

VIEW = "ad LONG, viewed_at TIMESTAMP"
CLICK = "clicked LONG, clicked_at TIMESTAMP"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/outer_without_watermark"))
def outer_without_watermark(spark: SparkSession) -> DataFrame:
    views = spark.readStream.schema(VIEW).json("views")
    clicks = spark.readStream.schema(CLICK).json("clicks")
    return views.join(clicks, F.expr("ad = clicked"), "left_outer")
