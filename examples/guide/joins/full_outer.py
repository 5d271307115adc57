"""A full outer join of two streams: also views without a click and clicks without a view."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("joins")

VIEW = "ad LONG, viewed_at TIMESTAMP"
CLICK = "clicked LONG, clicked_at TIMESTAMP"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/full_outer"))
def full_outer(spark: SparkSession) -> DataFrame:
    views = spark.readStream.schema(VIEW).option("maxFilesPerTrigger", 1).json("views")
    clicks = spark.readStream.schema(CLICK).option("maxFilesPerTrigger", 1).json("clicks")
    views = views.withWatermark("viewed_at", "10 minutes")
    clicks = clicks.withWatermark("clicked_at", "5 minutes")
    return views.join(
        clicks,
        F.expr("ad = clicked AND clicked_at BETWEEN viewed_at AND viewed_at + INTERVAL 20 MINUTES"),
        "full_outer",
    )
