"""A file is known by its name alone, not by its path."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/file_name_only"))
def file_name_only(spark: SparkSession) -> DataFrame:
    return (
        spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).option("fileNameOnly", True).json("readings")
    )
