"""Windows over the first of two shuffled values: what shuffle, rand and uuid return is another value each time."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/random_order"))
def random_order(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    # Both values are the same here, so that the rows can be compared with those of another run.
    drawn = readings.withColumn("drawn", F.shuffle(F.array("device", "device"))[0])
    return drawn.withWatermark("at", "10 minutes").groupBy(F.window("at", "15 minutes"), "drawn").count()
