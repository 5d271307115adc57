"""Everything that is there, in as many micro-batches as the limits ask for; then the stream ends."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("triggers")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/available_now"), trigger=sw.triggers.available_now())
def available_now(spark: SparkSession) -> DataFrame:
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
