"""Formats of the file sink in a real Spark, partitioned: each row once, also after a restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.core.sink import WriteContext
from slackwater.runtime.session.options import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.sinks.common.registry import open_output

pytestmark = [pytest.mark.spark]
CONTEXT = WriteContext("id", "work/one", 1, "append")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    options = SessionOptions("formats", "local[2]", settings, sw.sinks.files("avro", "out").connectors)
    session = start_session(options, lambda _: None)
    yield session
    end_session(session)


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_partitioned_rows_arrive_once_each(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    sink = sw.sinks.files(file_format, tmp_path / "out")
    (tmp_path / "in").mkdir()
    for number in range(2):
        rows = [f'{{"page": "page {n % 3}", "n": {number * 10 + n}}}' for n in range(10)]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(rows))
        frame = spark.readStream.schema("page string, n long").json(str(tmp_path / "in"))
        sink.check(frame, CONTEXT)
        writer = frame.writeStream.partitionBy("page").option("checkpointLocation", str(tmp_path / "checkpoint"))
        sink.attach(writer.trigger(availableNow=True), CONTEXT).start().awaitTermination()

    output = open_output(sink.identity())

    expected = Counter((f"page {n % 10 % 3}", n) for n in range(20))
    assert _rows(spark.read.format(file_format).load(sink.location)) == expected
    assert {folder.name for folder in (tmp_path / "out").glob("page=*")} == {f"page=page {page}" for page in range(3)}
    assert (output.last_written(), output.damage("all")) == (1, ())


def _rows(frame: DataFrame) -> Counter[tuple[str, int]]:
    return Counter((row["page"], row["n"]) for row in frame.collect())
