"""A Delta table by its name in the catalog. ``make_tables.py`` writes it.

Spark's catalog in memory forgets the name when the run ends: the stream registers the table again.
"""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources", connectors=["delta"])


@pipeline.stream(sink=sw.sinks.files("parquet", "out/delta_table"))
def delta_table(spark: SparkSession) -> DataFrame:
    spark.sql(f"CREATE TABLE IF NOT EXISTS readings USING delta LOCATION '{Path.cwd()}/tables/delta'")
    return spark.readStream.option("maxFilesPerTrigger", 1).table("readings")
