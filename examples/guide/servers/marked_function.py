"""foreachBatch with a transaction: exactly-once, by a marker that is committed with the rows."""

import os

from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import BigInteger, Column, DateTime, MetaData, Table, Text

import slackwater as sw

pipeline = sw.Pipeline("servers")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
URL = os.environ.get("POSTGRES_URL", "postgresql://localhost/guide")


readings = Table(
    os.environ.get("POSTGRES_TABLE", "readings") + "_by_function",
    MetaData(),
    Column("at", DateTime(timezone=True)),
    Column("device", Text),
    Column("kind", Text),
    Column("n", BigInteger),
)


def insert(frame: DataFrame, batch: sw.sinks.Batch) -> None:
    """Insert the rows of a batch. It is not called for a batch that the database has."""
    rows = [row.asDict() for row in frame.toLocalIterator()]
    with batch.transaction() as connection:
        readings.create(connection, checkfirst=True)
        if rows:
            connection.execute(readings.insert(), rows)


@pipeline.stream(sink=sw.sinks.foreach_batch(insert, name=readings.name, writes_to=URL))
def marked_function(spark: SparkSession) -> DataFrame:
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
