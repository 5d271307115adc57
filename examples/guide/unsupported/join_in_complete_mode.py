"""Refused: a join of two streams in complete mode. Instead: append mode."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

VIEW = "ad LONG, viewed_at TIMESTAMP"
CLICK = "clicked LONG, clicked_at TIMESTAMP"


@pipeline.stream(sink=sw.sinks.console(), output_mode="complete")
def join_in_complete_mode(spark: SparkSession) -> DataFrame:
    views = spark.readStream.schema(VIEW).json("views")
    clicks = spark.readStream.schema(CLICK).json("clicks")
    return views.join(clicks, F.expr("ad = clicked"))
