"""A table that Spark's JDBC source writes: exactly-once, by a marker in the transaction of the rows. It must exist."""

import os

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("servers")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
URL = os.environ.get("POSTGRES_URL", "postgresql://localhost/guide")
TABLE = os.environ.get("POSTGRES_TABLE", "readings") + "_jdbc"


@pipeline.stream(sink=sw.sinks.jdbc(URL, TABLE))
def jdbc_table(spark: SparkSession) -> DataFrame:
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
