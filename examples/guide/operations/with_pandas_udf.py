"""A Python function over whole columns, as pandas series."""

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@F.pandas_udf(DoubleType())
def fahrenheit(celsius: pd.Series) -> pd.Series:
    """Degrees Celsius as degrees Fahrenheit."""
    return celsius * 1.8 + 32


@pipeline.stream(sink=sw.sinks.files("parquet", "out/with_pandas_udf"))
def with_pandas_udf(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.withColumn("fahrenheit", fahrenheit("n"))
