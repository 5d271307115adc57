"""digests.py FOLDER NOISE: the digests of several queries as JSON. NOISE expressions are built before them."""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.runtime.program.profile import profile_of
from slackwater.runtime.session.settings import active

FOLDER, NOISE = Path(sys.argv[1]), int(sys.argv[2])
CODE = "the digest of what the function reaches"
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", str(1 + NOISE))
    .getOrCreate()
)
(FOLDER / "in").mkdir(exist_ok=True)
(FOLDER / "table").mkdir(exist_ok=True)


def source(schema: str = "id LONG, name STRING, at TIMESTAMP", **options: str) -> DataFrame:
    reader = spark.readStream.schema(schema)
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader.json(str(FOLDER / "in"))


def marked(rows: DataFrame, delay: str = "1 minute") -> DataFrame:
    return rows.withWatermark("at", delay)


def counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.window("at", "5 minutes"), "name").count()


def rate(rows: int) -> DataFrame:
    stream = spark.readStream.format("rate").option("rowsPerSecond", rows).load()
    return stream.withWatermark("timestamp", "1 minute")


def joined(left: str) -> DataFrame:
    first = marked(source().where(left)).alias("a")
    return first.join(marked(source(), "2 minutes").alias("b"), F.expr("a.id = b.id AND a.at = b.at"))


def names(count: int) -> list[str]:
    return [f"name {number}" for number in range(count)]


def pass_on(frames: Iterable[pd.DataFrame]) -> Iterable[pd.DataFrame]:
    yield from frames


spark.read.schema("id LONG").json(str(FOLDER / "table")).createOrReplaceTempView("kept")
for number in range(NOISE):
    spark.range(number + 1).select(F.col("id") + number).collect()

build: dict[str, Callable[[], DataFrame]] = {
    "base": lambda: counted(marked(source().where("id > 3"))),
    "other aggregation": lambda: marked(source().where("id > 3")).groupBy(F.window("at", "7 minutes")).agg(F.max("id")),
    "filter above": lambda: counted(marked(source().where("id > 3")).where("id < 90")),
    "other filter": lambda: counted(marked(source().where("id > 4"))),
    "other projection": lambda: counted(
        marked(source().where("id > 3").withColumn("at", F.expr("at + INTERVAL 1 HOUR")))
    ),
    "other option": lambda: counted(marked(source(maxFilesPerTrigger="2").where("id > 3"))),
    "other schema": lambda: counted(marked(source("id LONG, name STRING, at TIMESTAMP, more INT").where("id > 3"))),
    "other delay": lambda: counted(marked(source().where("id > 3"), "2 minutes")),
    "literal #12": lambda: counted(marked(source().where("name = 'a#12'"))),
    "literal #13": lambda: counted(marked(source().where("name = 'a#13'"))),
    "many names": lambda: counted(marked(source().where(F.col("name").isin(names(40))))),
    "many other names": lambda: counted(marked(source().where(F.col("name").isin([*names(39), "another"])))),
    "narrower filter above": lambda: counted(marked(source().where("id > 3")).where("id < 80")),
    "filter behind the aggregation": lambda: counted(marked(source().where("id > 3"))).where("name = 'b'"),
    "filter of the event time above": lambda: counted(marked(source().where("id > 3")).where("at > '2024-01-01'")),
    "filter of the result": lambda: counted(marked(source().where("id > 3"))).where("count > 3"),
    "current time": lambda: counted(marked(source().where("at > current_timestamp() - INTERVAL 1 HOUR"))),
    "udf in a filter above": lambda: counted(marked(source()).where(F.udf(bool, "boolean")("id"))),
    "rate": lambda: rate(3),
    "rate of 4": lambda: rate(4),
    "join": lambda: joined("id > 3"),
    "other join": lambda: joined("id > 4"),
    "subquery": lambda: counted(marked(source().where(F.col("id") > F.lit(3)).selectExpr("*", "(SELECT 7) AS seven"))),
    "other subquery": lambda: counted(
        marked(source().where(F.col("id") > F.lit(3)).selectExpr("*", "(SELECT 8) AS seven"))
    ),
    "udf above": lambda: marked(source().where("id > 3")).select(F.udf(str, "string")("id")),
    "udf": lambda: counted(marked(source().where(F.udf(bool, "boolean")("id")))),
    "map in pandas": lambda: counted(marked(source().mapInPandas(pass_on, "id LONG, name STRING, at TIMESTAMP"))),
    "random": lambda: counted(marked(source().where("rand() > 0.5"))),
    "table": lambda: counted(marked(source().join(spark.read.schema("id LONG").json(str(FOLDER / "table")), "id"))),
    "table in a subquery": lambda: counted(marked(source().selectExpr("*", "(SELECT max(id) FROM kept) AS most"))),
    "no watermark": lambda: source().where("id > 3"),
}
settings = spark.conf.get("spark.sql.debug.maxToStringFields")
found = {name: profile_of(frame(), CODE).rows_digest for name, frame in build.items()}
found |= {f"{name} with other code": profile_of(build[name](), "another").rows_digest for name in ("base", "udf")}
found |= {f"{name} with unknown code": profile_of(build[name](), None).rows_digest for name in ("base", "udf")}
if NOISE:
    # As a stream with settings leaves it: another session is the active one.
    with active(spark.newSession()):
        assert {name: profile_of(frame(), CODE).rows_digest for name, frame in build.items()}.items() <= found.items()
assert spark.conf.get("spark.sql.debug.maxToStringFields") == settings
sys.stdout.write(json.dumps(found))
