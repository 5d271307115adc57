"""An Iceberg table by its name in a catalog. ``make_tables.py`` writes it, and slackwater.toml names the catalog:

[spark]
"spark.sql.catalog.guide" = "org.apache.iceberg.spark.SparkCatalog"
"spark.sql.catalog.guide.type" = "hadoop"
"spark.sql.catalog.guide.warehouse" = "tables/iceberg"
"""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sources", connectors=["iceberg"])


@pipeline.stream(sink=sw.sinks.files("parquet", "out/iceberg_table"))
def iceberg_table(spark: SparkSession) -> DataFrame:
    one_file = spark.readStream.option("streaming-max-files-per-micro-batch", 1)
    return one_file.table("guide.db.readings")
