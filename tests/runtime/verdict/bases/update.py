"""A running windowed aggregation, in update mode."""

from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("web")

CLICKS = "ts timestamp, ts2 timestamp, page string, user string, n long, m long"


def clicks(spark):
    return spark.readStream.schema(CLICKS).option("maxFilesPerTrigger", 1).json("landing")


def keep(frame, batch):
    frame.write.mode("overwrite").parquet(f"out/{batch}")


@pipeline.stream(sink=sw.sinks.foreach_batch(keep), output_mode="update")
def out(spark):
    return (
        clicks(spark)
        .withWatermark("ts", "10 minutes")
        .groupBy(F.window("ts", "1 hour"), "page")
        .agg(F.sum("n").alias("n"), F.sum("m").alias("m"))
    )
