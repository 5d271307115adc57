"""Two inputs with watermarks of their own, of which the faster counts (policy max), as this stream's own setting."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
POLICY = {"spark.sql.streaming.multipleWatermarkPolicy": "max"}


@pipeline.stream(sink=sw.sinks.files("parquet", "out/watermarks_max"), settings=POLICY)
def watermarks_max(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    views = spark.readStream.schema("ad LONG, viewed_at TIMESTAMP").option("maxFilesPerTrigger", 1).json("views")
    marked = readings.withWatermark("at", "10 minutes").selectExpr("at", "'reading' AS what")
    both = marked.union(views.withWatermark("viewed_at", "20 minutes").selectExpr("viewed_at AS at", "'view' AS what"))
    return both.groupBy(F.window("at", "15 minutes"), "what").agg(F.count("*").alias("rows"))
