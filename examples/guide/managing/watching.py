"""spark.streams, progress, status and exception of running queries, from a thread of the user's own.

Each line of ``out/watching.seen`` has a query's name, whether it is active, its newest batch, its state, its exception.
"""

import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("managing")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
SEEN = Path("out/watching.seen")
EVERY_S = 0.2


def watch(spark: SparkSession) -> None:
    """Note each new batch of each query, as long as there is one."""
    noted: set[tuple[str, int]] = set()
    known = None
    while known is None or known:
        known = spark.streams.active or ([] if noted else None)
        for query in known or ():
            progress = query.lastProgress
            if progress is not None and (query.name, progress["batchId"]) not in noted:
                noted.add((query.name, progress["batchId"]))
                failed = query.exception()
                with SEEN.open("a") as seen:
                    seen.write(f"{query.name} {query.isActive} {progress['batchId']} {query.status} {failed}\n")
        time.sleep(EVERY_S)


@pipeline.stream(sink=sw.sinks.files("parquet", "out/watching"))
def watching(spark: SparkSession) -> DataFrame:
    SEEN.parent.mkdir(exist_ok=True)
    threading.Thread(target=watch, args=(spark,), daemon=True).start()
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
