"""A Python function, called for each row."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@F.udf(StringType())
def level(n):
    """How high a reading is."""
    return "high" if n > 6 else "low"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/with_udf"))
def with_udf(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.withColumn("level", level("n"))
