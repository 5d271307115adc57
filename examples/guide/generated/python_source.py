"""A data source in Python: five numbers a batch (Spark 4.0 and later)."""

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

import slackwater as sw

pipeline = sw.Pipeline("generated")


class Numbers(DataSource):
    """Numbers from 0, without an end."""

    @classmethod
    def name(cls) -> str:
        """What the source is called in format()."""
        return "numbers"

    def schema(self) -> str:
        """One column."""
        return "value LONG"

    def simpleStreamReader(self, schema: object) -> SimpleDataSourceStreamReader:
        """The reader of a stream."""
        return Reader()


class Reader(SimpleDataSourceStreamReader):
    """Reads five numbers at a time, and the same ones again where it is asked to."""

    def initialOffset(self) -> dict[str, int]:
        """Where a new stream starts."""
        return {"next": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int]], dict[str, int]]:
        """The next rows, and where to continue."""
        end = {"next": start["next"] + 5}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[int]]:
        """The rows of a batch that is run again."""
        return iter([(number,) for number in range(start["next"], end["next"])])


@pipeline.stream(sink=sw.sinks.files("parquet", "out/python_source"))
def python_source(spark: SparkSession) -> DataFrame:
    spark.dataSource.register(Numbers)
    return spark.readStream.format("numbers").load()
