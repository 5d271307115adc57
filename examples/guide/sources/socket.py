"""Lines of a socket, for tests only: what is in a batch that is interrupted is lost, as a socket gives lines once."""

import os

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources")

PORT = os.environ.get("LINES_PORT", "9999")


@pipeline.stream(sink=sw.sinks.files("text", "out/socket"))
def socket(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("socket").option("host", "localhost").option("port", PORT).load()
