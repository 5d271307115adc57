"""Avro files, by the connector spark-avro, which is in the locked list of connectors."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources", connectors=["avro"])

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/avro_files"))
def avro_files(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.format("avro").schema(READING).option("maxFilesPerTrigger", 1)
    return readings.load("as_avro")
