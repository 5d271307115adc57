"""Two streams joined by their windows: both have the same window as a key."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("joins")

VIEW = "ad LONG, viewed_at TIMESTAMP"
CLICK = "clicked LONG, clicked_at TIMESTAMP"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/window_join"))
def window_join(spark: SparkSession) -> DataFrame:
    views = spark.readStream.schema(VIEW).option("maxFilesPerTrigger", 1).json("views")
    clicks = spark.readStream.schema(CLICK).option("maxFilesPerTrigger", 1).json("clicks")
    views = views.withWatermark("viewed_at", "10 minutes")
    clicks = clicks.withWatermark("clicked_at", "5 minutes")
    viewed = views.select(F.window("viewed_at", "10 minutes").alias("viewed"), "ad")
    clicked = clicks.select(F.window("clicked_at", "10 minutes").alias("then"), "clicked")
    return viewed.join(clicked, F.expr("ad = clicked AND viewed = then"), "left_outer")
