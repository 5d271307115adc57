"""Two joins: views with their clicks, and these with the readings of the minute of the view."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("joins")

VIEW = "ad LONG, viewed_at TIMESTAMP"
CLICK = "clicked LONG, clicked_at TIMESTAMP"
READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/cascade"))
def cascade(spark: SparkSession) -> DataFrame:
    views = spark.readStream.schema(VIEW).option("maxFilesPerTrigger", 1).json("views")
    clicks = spark.readStream.schema(CLICK).option("maxFilesPerTrigger", 1).json("clicks")
    views = views.withWatermark("viewed_at", "10 minutes")
    clicks = clicks.withWatermark("clicked_at", "5 minutes")
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    readings = readings.withWatermark("at", "10 minutes")
    joined = views.join(
        clicks, F.expr("ad = clicked AND clicked_at BETWEEN viewed_at AND viewed_at + INTERVAL 20 MINUTES")
    )
    near = F.expr("n = ad % 9 AND at BETWEEN viewed_at - INTERVAL 5 MINUTES AND viewed_at + INTERVAL 5 MINUTES")
    # One event time column for each side of a join.
    return joined.drop("clicked_at").join(readings, near)
