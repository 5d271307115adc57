"""bounds.py FOLDER: how far back rows matter for several queries, as JSON."""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.runtime.program.profile import profile_of

FOLDER = Path(sys.argv[1])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
(FOLDER / "in").mkdir()


def rows() -> DataFrame:
    return spark.readStream.schema("at TIMESTAMP, other TIMESTAMP, device STRING, n LONG").json(str(FOLDER / "in"))


def marked(delay: str = "10 minutes") -> DataFrame:
    return rows().withWatermark("at", delay)


def windows(frame: DataFrame, *window: str) -> DataFrame:
    return frame.groupBy(F.window(*window), "device").count()


def sessions(frame: DataFrame, time: str, gap: str) -> DataFrame:
    return frame.groupBy(F.session_window(time, F.expr(gap)), "device").count()


def joined(condition: str, how: str = "inner") -> DataFrame:
    left = marked().selectExpr("at AS a", "other AS o", "device AS d", "n AS m")
    right = marked("5 minutes").selectExpr("at AS b", "device AS e", "n AS k")
    return left.join(right, F.expr(condition), how)


def rows_in_sets() -> DataFrame:
    """Each set has the window; the plan does not show that."""
    marked().createOrReplaceTempView("marked")
    hour = "window(at, '1 hour')"
    return spark.sql(f"SELECT count(*) FROM marked GROUP BY GROUPING SETS (({hour}), ({hour}, device))")


WITHIN = "d = e AND b BETWEEN a AND a + INTERVAL 20 MINUTES"
static = spark.createDataFrame([("a", "b")], "device STRING, place STRING")
first = windows(marked(), "at", "10 minutes")
QUERIES = {
    "tumbling": windows(marked(), "at", "1 hour"),
    "sliding": windows(marked(), "at", "1 hour", "15 minutes"),
    "with a start": windows(marked(), "at", "1 hour", "1 hour", "5 minutes"),
    "next to a remainder": windows(marked().withColumn("window_of", F.expr("n % 7")), "at", "1 hour"),
    "renamed": windows(marked().selectExpr("at AS x", "device").where("device > 'a'"), "x", "1 hour"),
    "joined with a table": windows(marked().join(static, "device"), "at", "1 hour"),
    "watermark above a union": windows(rows().union(rows()).withWatermark("at", "10 minutes"), "at", "1 hour"),
    "chained": first.groupBy(F.window("window", "30 minutes")).count(),
    "chained by window_time": first.groupBy(F.window(F.window_time("window"), "30 minutes")).count(),
    "chained by another column": windows(marked(), "other", "10 minutes").groupBy(F.window("window", "1 hour")).count(),
    "by a key": marked().groupBy("device").count(),
    "windows of another column": windows(marked(), "other", "1 hour"),
    "windows of a sum": marked().groupBy(F.window(F.expr("at + INTERVAL 1 HOUR"), "1 hour")).count(),
    "a source without a watermark": windows(marked().union(rows()), "at", "1 hour"),
    "session": sessions(marked(), "at", "'4 minutes'"),
    "session in a window": marked()
    .select("at", "device", F.window("at", "1 hour").alias("hour"))
    .groupBy("hour", F.session_window("at", "4 minutes"))
    .count(),
    "session of a renamed column": sessions(
        marked().selectExpr("at AS x", "device").where("n > 1"), "x", "'90 seconds'"
    ),
    "session of another column": sessions(marked(), "other", "'4 minutes'"),
    "session with a gap by row": sessions(marked(), "at", "CASE WHEN n > 3 THEN '5 minutes' ELSE '9 minutes' END"),
    "session with a gap of a day": sessions(marked(), "at", "'1 day'"),
    "session of a union": sessions(marked().union(marked()), "at", "'4 minutes'"),
    **{how: joined(WITHIN, how) for how in ("inner", "left_outer", "right_outer", "full_outer", "left_semi")},
    "both ways": joined("d = e AND b BETWEEN a - INTERVAL 5 MINUTES AND a + INTERVAL 20 MINUTES"),
    "joined next to a window": marked()
    .selectExpr("at AS a", "window(at, '1 hour') AS hour", "device AS d")
    .join(marked("5 minutes").selectExpr("at AS b", "device AS e"), F.expr(WITHIN)),
    "one bound": joined("d = e AND b >= a"),
    "no bound": joined("d = e"),
    "bound in a filter above": joined("d = e").where("b BETWEEN a AND a + INTERVAL 20 MINUTES"),
    "filter above": joined(WITHIN).where("m > k"),
    "event time as a key": joined("d = e AND a = b"),
    "truncated event time as a key": joined("d = e AND date_trunc('hour', a) = date_trunc('hour', b)"),
    "event time as a null-safe key": joined("d = e AND a <=> b"),
    "bound of another column": joined("d = e AND b BETWEEN o AND o + INTERVAL 20 MINUTES"),
    "joined, then counted": windows(joined(WITHIN).withColumnRenamed("d", "device"), "a", "1 hour"),
    "rollup": marked().rollup(F.window("at", "1 hour"), "device").count(),
    "cube": marked().cube("device", F.window("at", "1 hour")).count(),
    "rollup of sessions": marked().rollup(F.session_window("at", "4 minutes"), "device").count(),
    "grouping sets": rows_in_sets(),
    "rollup, then windows": marked().rollup(F.window("at", "10 minutes"), "device").count().groupBy("window").count(),
    "deduplicated": marked().dropDuplicates(["at", "device"]),
    "distinct rows of SQL": spark.sql("SELECT DISTINCT at, device FROM marked"),
}
if not spark.version.startswith("3."):
    # Spark 3.5 knows the window of a column only, not that of an expression.
    ends = marked().select("device", F.window_time(F.window("at", "1 hour")).alias("at"))
    QUERIES["session of the end of a window"] = sessions(ends, "at", "'4 minutes'")
profiles = {name: profile_of(frame) for name, frame in QUERIES.items()}
found = {name: (one.retention_ms, one.session_gap_ms, one.window_starts_ms) for name, one in profiles.items()}
silent = [name for name, one in profiles.items() if not one.asks_for_batches]
complete = profile_of(QUERIES["tumbling"], output_mode="complete")
sys.stdout.write(json.dumps({"found": found, "silent": silent, "complete": complete.asks_for_batches}))
