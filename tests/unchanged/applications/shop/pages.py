"""A job of the package, for programs that import it."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shop.cleaning import clean


def write(folder: str) -> None:
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{folder}/in")
    pages = clicks.select(F.udf(clean)("page").alias("page"))
    writer = pages.writeStream.format("json").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/pages").awaitTermination()
