"""At most 2000 bytes of files in each batch, and at least one file (Spark 4.0 and later)."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/max_bytes"))
def max_bytes(spark: SparkSession) -> DataFrame:
    return spark.readStream.schema(READING).option("maxBytesPerTrigger", 2000).json("readings")
