"""Run with -m, by cron: configured by the environment; one query after another, each to the end of its input."""

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from shop.cleaning import clean

DATA = os.environ["SHOP_DATA"]


def main() -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    reader = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1)
    clicks = reader.json(f"{DATA}/in")
    cleaned = clicks.withColumn("page", F.udf(clean, StringType())("page"))

    def write(batch: DataFrame, number: int) -> None:
        # The batch's number names its folder, so that a batch that is run again replaces its own rows.
        batch.coalesce(1).write.mode("overwrite").json(f"{DATA}/batches/{number}")

    first = (
        cleaned.writeStream.foreachBatch(write)
        .queryName("batches")
        .trigger(availableNow=True)
        .option("checkpointLocation", f"{DATA}/checkpoints/batches")
        .start()
    )
    first.awaitTermination()
    second = cleaned.select("page").writeStream.format("text").option("checkpointLocation", f"{DATA}/checkpoints/pages")
    query = second.start(f"{DATA}/pages")
    query.processAllAvailable()
    query.stop()


if __name__ == "__main__":
    main()
