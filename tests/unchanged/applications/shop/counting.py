"""A job of the package with state, for programs that import it."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shop.cleaning import clean


def count(folder: str) -> None:
    spark = (
        SparkSession.builder.config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{folder}/in")
    cleaned = clicks.withWatermark("at", "10 minutes").withColumn("page", F.udf(clean)("page"))
    counts = cleaned.groupBy(F.window("at", "5 minutes"), "page").count()
    rows = counts.select(F.col("window.start").cast("long").alias("start"), "page", "count")
    writer = rows.writeStream.format("json").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/counts").awaitTermination()
