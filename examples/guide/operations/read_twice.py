"""One streaming DataFrame read twice: Spark keeps one source for both uses, and reads it for each."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/read_twice"))
def read_twice(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    others = spark.readStream.schema(READING).option("maxFilesPerTrigger", 2).json("as_text")
    return readings.where("n < 5").union(readings.where("n > 7")).union(others)
