"""The schema is inferred from the files that are there at the start, by spark.sql.streaming.schemaInference."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/inferred_schema"))
def inferred_schema(spark: SparkSession) -> DataFrame:
    spark.conf.set("spark.sql.streaming.schemaInference", True)
    return spark.readStream.option("maxFilesPerTrigger", 1).json("readings").select("at", "device", "kind", "n")
