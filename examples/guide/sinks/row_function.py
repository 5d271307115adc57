"""foreach: at-least-once. The rows of an interrupted batch, and of a repeated task, come a second time."""

import json
import uuid
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("sinks")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


class Lines:
    """A file of JSON lines for each partition of each batch. The executors need not be in the driver's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, _partition: int, _batch: int) -> bool:
        """Start a file."""
        self.rows: list[str] = []
        return True

    def process(self, row: Row) -> None:
        """Take a row."""
        self.rows.append(json.dumps(row.asDict(), default=str) + "\n")

    def close(self, error: Exception | None) -> None:
        """Write the file, unless the task failed."""
        if error is None and self.rows:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / f"part-{uuid.uuid4()}").write_text("".join(self.rows))


@pipeline.stream(sink=sw.sinks.foreach(Lines(Path("out/row_function").absolute())))
def row_function(spark: SparkSession) -> DataFrame:
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
