"""Settings of Spark for this stream alone: its time zone, and the number of its state partitions."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
SETTINGS = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.shuffle.partitions": 3}


@pipeline.stream(sink=sw.sinks.files("parquet", "out/stream_settings"), settings=SETTINGS)
def stream_settings(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    hours = readings.withWatermark("at", "10 minutes").groupBy(F.window("at", "1 hour"), "device").count()
    return hours.select("device", F.date_format("window.start", "yyyy-MM-dd HH:mm").alias("hour_in_tokyo"), "count")
