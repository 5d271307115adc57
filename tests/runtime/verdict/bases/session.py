"""Sessions of users with a fixed gap."""

from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("web")

CLICKS = "ts timestamp, ts2 timestamp, page string, user string, n long, m long"


def clicks(spark):
    return spark.readStream.schema(CLICKS).option("maxFilesPerTrigger", 1).json("landing")


@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    return (
        clicks(spark)
        .withWatermark("ts", "10 minutes")
        .groupBy(F.session_window("ts", "5 minutes"), "user")
        .agg(F.sum("n").alias("n"), F.count("*").alias("clicks"))
    )
