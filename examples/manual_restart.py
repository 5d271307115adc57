"""The popular manual restart after an upgrade that Spark refuses, in plain PySpark.

    python manual_restart.py CHECKPOINT OUTPUT READINGS [CHECKPOINT OUTPUT READINGS ...]

Runs the daily aggregation of weather.py, the file next to it, over a directory of readings, and prints one line for
each three arguments: ``done``, or the name of Spark's error. With the old checkpoint this is the upgrade itself; with
a new checkpoint, the old output and only the unread readings it is the manual restart. ``slackwater demo`` runs both.
"""

import re
import sys
from pathlib import Path

import weather
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession


def run(spark: SparkSession, checkpoint: Path, output: Path, readings: Path) -> str:
    """Run to the end of these readings."""
    measured = spark.readStream.schema(weather.READING).option("maxFilesPerTrigger", 1).parquet(str(readings))
    writer = weather.daily(measured).writeStream.format("parquet").option("path", str(output))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        return error_name(error)
    return "done"


def error_name(error: PySparkException) -> str:
    """The name of the innermost error in Spark's message that has one: ``[NAME] text``, ``[NAME.DETAIL] text``."""
    names = [name for name in re.findall(r"\[([A-Z][A-Z0-9_.]+)\]", str(error)) if name != "STREAM_FAILED"]
    return names[-1] if names else type(error).__name__


def main() -> None:
    builder = SparkSession.builder.master("local[*]").appName("manual restart")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    with builder.getOrCreate() as spark:
        spark.sparkContext.setLogLevel("OFF")
        for trial in range(0, len(sys.argv) - 1, 3):
            checkpoint, output, readings = map(Path, sys.argv[1:][trial : trial + 3])
            print(run(spark, checkpoint, output, readings), flush=True)


if __name__ == "__main__":
    main()
