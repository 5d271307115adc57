"""Two windowed aggregations of two streams, joined by their windows."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("joins")

VIEW = "ad LONG, viewed_at TIMESTAMP"
CLICK = "clicked LONG, clicked_at TIMESTAMP"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/windows_join_windows"))
def windows_join_windows(spark: SparkSession) -> DataFrame:
    views = spark.readStream.schema(VIEW).option("maxFilesPerTrigger", 1).json("views")
    clicks = spark.readStream.schema(CLICK).option("maxFilesPerTrigger", 1).json("clicks")
    views = views.withWatermark("viewed_at", "10 minutes")
    clicks = clicks.withWatermark("clicked_at", "5 minutes")
    viewed = views.groupBy(F.window("viewed_at", "10 minutes").alias("viewed")).agg(F.count("*").alias("views"))
    clicked = clicks.groupBy(F.window("clicked_at", "10 minutes").alias("then")).agg(F.count("*").alias("clicks"))
    return viewed.join(clicked, F.expr("viewed = then"))
