"""Pages as the workers clean them, by a module that spark-submit hands to driver and executors (--py-files)."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from shop.cleaning import clean

folder = sys.argv[1]
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
pages = spark.readStream.schema("at TIMESTAMP, page STRING").json(f"{folder}/in").select(F.udf(clean)("page"))
writer = pages.toDF("page").writeStream.format("json").trigger(availableNow=True)
writer.option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/pages").awaitTermination()
