"""failing.py FOLDER: causes each failure that has a code once, with a real query. Prints the failures as JSON."""

import json
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.runtime.run.failures import classify

FOLDER = Path(sys.argv[1])
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")


def add_file(number: int) -> None:
    for name in ("in", "other"):
        (FOLDER / name).mkdir(exist_ok=True)
        (FOLDER / name / f"{number}.json").write_text('{"id": 1, "at": "2026-01-01T00:00:00Z"}\n')


def rows(folder: str = "in") -> DataFrame:
    return spark.readStream.schema("id LONG, at TIMESTAMP").json(str(FOLDER / folder))


def run(
    frame: DataFrame,
    checkpoint: str,
    *,
    function: Callable[[DataFrame, int], None] | None = None,
    mode: str = "update",
) -> StreamingQuery:
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(FOLDER / checkpoint))
    writer = writer.trigger(availableNow=True)
    query = (writer.foreachBatch(function) if function else writer.format("noop")).start()
    with suppress(StreamingQueryException):
        query.awaitTermination()
    return query


def failure(query: StreamingQuery) -> dict[str, str | None] | None:
    error = query.exception()
    return classify(error)._asdict() if error else None


def bad(_number: int) -> int:
    raise ValueError("[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] said the user")  # place of function


def bad_batch(_frame: DataFrame, _batch: int) -> None:
    raise KeyError("no such table")  # place of batch-function


def unreachable(_frame: DataFrame, _batch: int) -> None:
    try:
        socket.create_connection(("127.0.0.1", free_port()))
    except OSError as error:
        raise RuntimeError("the write failed") from error  # place of batch-unreachable


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


add_file(0)
counts = rows().groupBy("id").count()
for name, frame in (("state", counts), ("plain", rows()), ("two", rows().union(rows("other")))):
    assert failure(run(frame, name)) is None, name
add_file(1)
found = {
    "function": failure(run(rows().select(F.udf(bad, "long")("id")), "function")),
    "batch-function": failure(run(rows(), "batch", function=bad_batch)),
    "batch-unreachable": failure(run(rows(), "unreachable", function=unreachable)),
    "state-value": failure(run(rows().groupBy("id").agg(F.collect_list("at")), "state")),
    "state-key": failure(run(rows().groupBy(F.col("id").cast("string")).count(), "state")),
    "operator-removed": failure(run(rows(), "state")),
    "operator-added": failure(run(counts, "plain")),
    "source-added": failure(run(rows().union(rows("other")), "plain")),
    "source-removed": failure(run(rows(), "two")),
    "source-type": failure(run(spark.readStream.format("rate").load(), "plain")),
    "source-folder": failure(run(rows("other"), "plain")),
    "socket": failure(
        run(spark.readStream.format("socket").option("host", "127.0.0.1").option("port", free_port()).load(), "socket")
    ),
    "expression": failure(run(rows().select(F.expr("raise_error('no')")), "expression")),
}
try:
    run(counts, "refused", mode="append")
except AnalysisException as error:
    found["query-refused"] = classify(error)._asdict()
sys.stdout.write(json.dumps(found))
