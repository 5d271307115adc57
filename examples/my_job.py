"""A plain PySpark job that knows nothing of Slackwater: clicks per page and minute, with a checkpoint of its own."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("my_job").config("spark.sql.shuffle.partitions", 2).getOrCreate()
clicks = spark.readStream.schema("page STRING, clicked_at TIMESTAMP").option("maxFilesPerTrigger", 1).json("clicks")
minutes = clicks.withWatermark("clicked_at", "10 minutes").groupBy(F.window("clicked_at", "1 minute"), "page")
query = (
    minutes.agg(F.count("*").alias("clicks"))
    .select("window.start", "page", "clicks")
    .writeStream.queryName("per_minute")
    .option("checkpointLocation", "checkpoints/per_minute")
    .trigger(availableNow=True)
    .start("out/per_minute", format="parquet")
)
query.awaitTermination()
