"""A PostgreSQL table: exactly-once, rows and batch number in one transaction."""

import os

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("servers")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
URL = os.environ.get("POSTGRES_URL", "postgresql://localhost/guide")
TABLE = os.environ.get("POSTGRES_TABLE", "readings")


@pipeline.stream(sink=sw.sinks.postgres(URL, TABLE, create=True, keep_batch_id=True))
def postgres_table(spark: SparkSession) -> DataFrame:
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
