"""Several queries in one session: each stream is a query of its own, with a checkpoint of its own."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("managing")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


def readings(spark: SparkSession) -> DataFrame:
    """The source of both queries: each reads it by itself."""
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/several_queries"))
def several_queries(spark: SparkSession) -> DataFrame:
    return readings(spark).where("n > 4")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/hourly"))
def hourly(spark: SparkSession) -> DataFrame:
    marked = readings(spark).withWatermark("at", "10 minutes")
    return marked.groupBy(F.window("at", "1 hour")).count()
