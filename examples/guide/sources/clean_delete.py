"""Files that were read are deleted."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/clean_delete"))
def clean_delete(spark: SparkSession) -> DataFrame:
    return (
        spark.readStream.schema(READING)
        .option("maxFilesPerTrigger", 1)
        .option("cleanSource", "delete")
        .json("to_delete")
    )
