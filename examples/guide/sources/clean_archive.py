"""Files that were read are moved to an archive."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/clean_archive"))
def clean_archive(spark: SparkSession) -> DataFrame:
    return (
        spark.readStream.schema(READING)
        .option("maxFilesPerTrigger", 1)
        .option("cleanSource", "archive")
        .option("sourceArchiveDir", "archive")
        .json("to_archive")
    )
