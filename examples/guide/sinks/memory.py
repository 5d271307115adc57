"""A table in the driver's memory, within one run. In complete mode a restart writes the whole table again.

A thread of its own copies the table to ``out/memory.seen`` while the query runs: no other process can read it.
"""

import json
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sinks")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
SEEN = Path("out/memory.seen")
EVERY_S = 0.2


def copy_table(spark: SparkSession) -> None:
    """Copy the table, as long as there is a query."""
    started = False
    while spark.streams.active or not started:
        started = started or bool(spark.streams.active)
        if spark.catalog.tableExists("readings_by_kind"):
            rows = [row.asDict() for row in spark.table("readings_by_kind").collect()]
            SEEN.parent.mkdir(exist_ok=True)
            copy = SEEN.with_suffix(".new")
            copy.write_text(json.dumps(rows))
            # A reader, and a kill, find a whole copy.
            copy.replace(SEEN)
        time.sleep(EVERY_S)


@pipeline.stream(sink=sw.sinks.memory("readings_by_kind"), output_mode="complete")
def memory(spark: SparkSession) -> DataFrame:
    threading.Thread(target=copy_table, args=(spark,), daemon=True).start()
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.groupBy("kind").count()
