"""A class with main() and arguments; two queries started in a loop, both awaited at once."""

import argparse
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


class Job:
    def __init__(self, data: Path, end: bool) -> None:
        self.data = data
        self.end = end
        self.spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        self.spark.conf.set("spark.sql.shuffle.partitions", "1")

    def clicks(self) -> DataFrame:
        reader = self.spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.data / "in")).withWatermark("at", "10 minutes")

    def frames(self) -> dict[str, DataFrame]:
        windows = self.clicks().groupBy(F.window("at", "5 minutes"), "page").count()
        return {
            "counts": windows.select(F.col("window.start").cast("long").alias("start"), "page", "count"),
            "seen": self.clicks().dropDuplicates(["at", "page"]),
        }

    def main(self) -> None:
        for name, frame in self.frames().items():
            writer = frame.writeStream.queryName(name).outputMode("append")
            if self.end:
                writer = writer.trigger(availableNow=True)
            writer.start(
                path=str(self.data / name),
                format="json",
                checkpointLocation=str(self.data / "checkpoints" / name),
            )
        while self.spark.streams.active:
            self.spark.streams.awaitAnyTermination()
            self.spark.streams.resetTerminated()
        self.spark.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--end", action="store_true")
    arguments = parser.parse_args()
    Job(arguments.data, arguments.end).main()
