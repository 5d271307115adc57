"""batches_without_data.py FOLDER: which stateful queries run a batch without data when the watermark advances, as JSON.

Of each query in each output mode that Spark takes: whether its profile says so, and the number that Spark runs.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkValueError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from slackwater.runtime.program.profile import profile_of

FOLDER = Path(sys.argv[1])
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", 1)
    .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
SCHEMA = "at TIMESTAMP, other TIMESTAMP, device STRING, n LONG"
for number, hour in enumerate((10, 12)):
    (FOLDER / "in").mkdir(exist_ok=True)
    time = f"2026-01-01T{hour}:00:00Z"
    file = FOLDER / "in" / f"{number}.json"
    file.write_text(json.dumps({"at": time, "other": time, "device": "a", "n": number}))
    os.utime(file, (number, number))


def rows() -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(FOLDER / "in"))


def marked(delay: str = "10 minutes") -> DataFrame:
    return rows().withWatermark("at", delay)


def joined(condition: str, how: str = "inner") -> DataFrame:
    left = marked().selectExpr("at AS a", "other AS o", "device AS d", "n AS m")
    right = marked("5 minutes").selectExpr("at AS b", "device AS e", "n AS k")
    return left.join(right, F.expr(condition), how)


def bounded(how: str) -> Callable[[str], DataFrame]:
    return lambda _: joined(WITHIN, how)


def windows(frame: DataFrame, time: str = "at") -> DataFrame:
    return frame.groupBy(F.window(time, "1 hour"), "device").count()


def hours(frame: DataFrame) -> DataFrame:
    return frame.select(F.window("at", "1 hour"))


def counted(_: Any, frames: Iterable[Any], state: Any) -> Iterator[Any]:
    import pandas as pd  # noqa: PLC0415 - in the worker

    if not state.hasTimedOut:
        state.update((sum(len(one) for one in frames),))
    yield pd.DataFrame({"n": [1]})


def stateful(timeout: str) -> Callable[[str], DataFrame]:
    return lambda mode: marked().groupBy("device").applyInPandasWithState(counted, "n LONG", "n LONG", mode, timeout)


def with_state(time_mode: str, mode: str) -> DataFrame:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor  # noqa: PLC0415 - Spark 4

    def init(self: Any, handle: Any) -> None:
        self.count = handle.getValueState("count", "n LONG")

    def handle_rows(self: Any, _: Any, frames: Iterable[Any], _times: Any) -> Iterator[Any]:
        import pandas as pd  # noqa: PLC0415 - in the worker

        self.count.update((sum(len(one) for one in frames),))
        yield pd.DataFrame({"n": [1]})

    made = {"init": init, "handleInputRows": handle_rows, "close": lambda _: None}
    counted = type("Counted", (StatefulProcessor,), made)
    return marked().groupBy("device").transformWithStateInPandas(counted(), "n LONG", mode, time_mode)


WITHIN = "d = e AND b BETWEEN a AND a + INTERVAL 20 MINUTES"
QUERIES: dict[str, Callable[[str], DataFrame]] = {
    "no state": lambda _: marked().where("n > 0"),
    "windows": lambda _: windows(marked()),
    "sliding windows": lambda _: marked().groupBy(F.window("at", "1 hour", "15 minutes")).count(),
    "windows without a watermark": lambda _: windows(rows()),
    "by a key": lambda _: marked().groupBy("device").count(),
    "by a key without a watermark": lambda _: rows().groupBy("device").count(),
    "of all rows": lambda _: marked().agg(F.count("*")),
    "distinct": lambda _: marked().select("at", "device").distinct(),
    "sessions": lambda _: marked().groupBy(F.session_window("at", "5 minutes"), "device").count(),
    "deduplicated": lambda _: marked().dropDuplicates(["at", "device"]),
    "deduplicated by a key": lambda _: marked().dropDuplicates(["device"]),
    "deduplicated without a watermark": lambda _: rows().dropDuplicates(["device"]),
    "deduplicated within the watermark": lambda _: marked().dropDuplicatesWithinWatermark(["device"]),
    "sorted windows": lambda _: windows(marked()).orderBy("count"),
    "a limit": lambda _: marked().limit(1),
    **{f"{how} join": bounded(how) for how in ("inner", "left", "right", "full", "left_semi")},
    "join by event time": lambda _: joined("d = e AND a = b"),
    "join of windows": lambda _: hours(marked()).join(hours(marked("1 minute")), "window"),
    "join without bound": lambda _: joined("d = e"),
    "join with one bound": lambda _: joined("d = e AND b >= a"),
    "join bound by another column": lambda _: joined("d = e AND b BETWEEN o AND o + INTERVAL 20 MINUTES"),
    "join of one watermark": lambda _: (
        marked().selectExpr("at a", "device d").join(rows().selectExpr("at b", "device e"), F.expr(WITHIN))
    ),
    "join with a table": lambda _: windows(marked().join(spark.range(1).selectExpr("'a' AS device"), "device")),
    "union of counts": lambda _: windows(marked()).unionByName(windows(marked("1 hour"))),
    "chained windows": lambda _: windows(marked()).groupBy(F.window("window", "2 hours")).count(),
    "deduplicated, then windows": lambda _: windows(marked().dropDuplicates(["at", "device"])),
    "deduplicated by a key, then windows": lambda _: windows(marked().dropDuplicates(["device", "n"])),
    "join, then windows": lambda _: windows(joined(WITHIN).withColumnRenamed("d", "device"), "a"),
    "join without bound, then windows": lambda _: windows(joined("d = e").withColumnRenamed("d", "device"), "a"),
    "join without bound, then deduplicated": lambda _: joined("d = e").select("a", "d").dropDuplicates(),
    "windows, then a join": lambda _: (
        windows(marked()).selectExpr("window", "count c").join(windows(marked("1 minute")), "window")
    ),
    "applyInPandasWithState, no timeout": stateful("NoTimeout"),
    "applyInPandasWithState, event time": stateful("EventTimeTimeout"),
    "transformWithState, no time": lambda mode: with_state("None", mode),
    "transformWithState, event time": lambda mode: with_state("EventTime", mode),
}


def started(frame: DataFrame, checkpoint: Path, mode: str) -> StreamingQuery:
    writer = frame.writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def batches(checkpoint: Path) -> int:
    return len(list((checkpoint / "commits").glob("[0-9]*")))


expected, queries = {}, {}
for name, make in QUERIES.items():
    for mode in ("append", "update", "complete"):
        case = f"{name} ({mode})"
        try:
            frame = make(mode)
            profile = profile_of(frame, output_mode=mode)
            queries[case] = started(frame, FOLDER / case, mode)
        except (AnalysisException, IllegalArgumentException, PySparkValueError):
            continue
        expected[case] = bool(profile.watermark_delays_ms) and bool(profile.operators) and profile.asks_for_batches
        if len(queries) % 4 == 0:
            queries[case].awaitTermination()
for query in queries.values():
    query.awaitTermination()
ran = {case: batches(FOLDER / case) - 2 for case in expected}
sys.stdout.write(json.dumps({"expected": expected, "ran": ran}))
