"""foreachBatch: at-least-once, unless the function is idempotent or writes in the batch's transaction."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sinks")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


def append(frame: DataFrame, _batch: sw.sinks.Batch) -> None:
    """Append the rows of a batch, again if it was interrupted."""
    frame.write.mode("append").json("out/batch_function")


@pipeline.stream(sink=sw.sinks.foreach_batch(append))
def batch_function(spark: SparkSession) -> DataFrame:
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
