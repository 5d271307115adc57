"""Late rows: the watermark drops those that are more than 3 minutes behind the newest event time."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/late_data"))
def late_data(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "3 minutes")
    return marked.groupBy(F.window("at", "6 minutes")).agg(F.count("*").alias("readings"))
