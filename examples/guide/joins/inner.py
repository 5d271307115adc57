"""An inner join of two streams without watermarks: Spark keeps all rows of both as state."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("joins")

VIEW = "ad LONG, viewed_at TIMESTAMP"
CLICK = "clicked LONG, clicked_at TIMESTAMP"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/inner"))
def inner(spark: SparkSession) -> DataFrame:
    views = spark.readStream.schema(VIEW).option("maxFilesPerTrigger", 1).json("views")
    clicks = spark.readStream.schema(CLICK).option("maxFilesPerTrigger", 1).json("clicks")
    return views.join(clicks, F.expr("ad = clicked"))
