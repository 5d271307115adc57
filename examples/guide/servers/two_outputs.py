"""A batch that is computed once and written into two outputs: each has its own mark, and skips a batch that it has."""

import os

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("servers")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
URL = os.environ.get("POSTGRES_URL", "postgresql://localhost/guide")
TABLE = os.environ.get("POSTGRES_TABLE", "readings") + "_of_two"

both = sw.sinks.all_of(
    sw.sinks.delta("out/two_outputs"), sw.sinks.postgres(URL, TABLE, create=True, keep_batch_id=True)
)


@pipeline.stream(sink=both)
def two_outputs(spark: SparkSession) -> DataFrame:
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
