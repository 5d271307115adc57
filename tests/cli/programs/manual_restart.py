"""A manual restart in plain PySpark: a new checkpoint, and only the input that is left.

    python manual_restart.py SITUATIONS

SITUATIONS is a JSON list of {"input", "checkpoint", "output", "files": files for each batch, "stateful"}. Writes a JSON
list with Spark's message for each that failed, else null.
"""

import json
import sys

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


def main() -> None:
    builder = SparkSession.builder.master("local[2]").appName("manual restart")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    with builder.getOrCreate() as spark:
        spark.sparkContext.setLogLevel("OFF")
        messages = [restart(spark, situation) for situation in json.loads(sys.argv[1])]
        sys.stdout.write(json.dumps(messages) + "\n")


def restart(spark: SparkSession, situation: dict[str, str]) -> str | None:
    """Restart by hand and read to the end of the input."""
    reader = spark.readStream.schema("page STRING, clicked_at TIMESTAMP")
    clicks = reader.option("maxFilesPerTrigger", situation["files"]).json(situation["input"])
    if situation["stateful"]:
        minutes = clicks.withWatermark("clicked_at", "10 minutes").groupBy(F.window("clicked_at", "1 minute"), "page")
        clicks = minutes.agg(F.count("*").alias("clicks")).select("window.start", "page", "clicks")
    writer = clicks.writeStream.format("parquet").option("path", situation["output"])
    query = writer.option("checkpointLocation", situation["checkpoint"]).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        return str(error)
    return None


if __name__ == "__main__":
    main()
