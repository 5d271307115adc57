"""Clicks as files, by a query in a server of Spark Connect: its address is the second argument."""

import sys

from pyspark.sql import SparkSession

folder, address = sys.argv[1:3]
spark = SparkSession.builder.remote(address).getOrCreate()
clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{folder}/in")
writer = clicks.select("page").writeStream.format("json").trigger(availableNow=True)
writer.option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/out").awaitTermination()
spark.stop()
