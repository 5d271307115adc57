"""Lines of text files, and the file that each came from."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/text_files"))
def text_files(spark: SparkSession) -> DataFrame:
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text("as_text")
    return lines.select("value", "_metadata.file_name")
