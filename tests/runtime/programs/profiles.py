"""profiles.py FOLDER: what the profiles of queries show of exactness, as JSON.

Random functions, late rows in a chain, aggregates by the order of rows, tables.
"""

import json
import random
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.runtime.program.profile import profile_of

FOLDER = Path(sys.argv[1])
CORRECTNESS = "spark.sql.streaming.statefulOperator.checkCorrectness.enabled"
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
(FOLDER / "in").mkdir()
source = spark.readStream.schema("id LONG, name STRING, at TIMESTAMP").json(str(FOLDER / "in"))
marked = source.withWatermark("at", "1 minute")
other = marked.select(F.col("id").alias("other"), F.col("at").alias("then"))


def dice(_: str) -> int:
    return random.randint(1, 6)


def counted(rows: DataFrame, *keys: str) -> DataFrame:
    return rows.groupBy(F.window("at", "5 minutes"), *keys).count()


def of_rows(*aggregates: str) -> DataFrame:
    first, *others = map(F.expr, aggregates)
    return marked.groupBy(F.window("at", "5 minutes")).agg(first, *others)


table = spark.read.schema("id LONG, place STRING").json(str(FOLDER / "in"))
table.createOrReplaceTempView("places")
MODE_BY_ORDER = () if spark.version.startswith("3.") else ("mode() WITHIN GROUP (ORDER BY id)",)
bounded = marked.join(other, F.expr("id = other AND then BETWEEN at AND at + INTERVAL 5 MINUTES"))
build = {
    "filter": counted(marked.where("rand() > 0.5")),
    "key": marked.withColumn("key", F.expr("uuid()")).dropDuplicates(["key"]),
    "order of an array": counted(marked.withColumn("a", F.shuffle(F.array("id", "id"))[0]), "a"),
    "number of a row": counted(marked.withColumn("a", F.monotonically_increasing_id()), "a"),
    "partition": counted(marked.withColumn("a", F.spark_partition_id()), "a"),
    "with a seed": counted(marked.where(F.randn(5) > 0)),
    "sample": counted(marked.sample(0.5, 7)),
    "udf": counted(marked.withColumn("a", F.udf(dice, "int").asNondeterministic()("name")), "a"),
    "join": marked.where("rand() > 0.5").join(other, F.expr("id = other")),
    "two": counted(marked.where("rand() > 0.5").withColumn("a", F.expr("uuid()")), "a"),
    "a column that is not used": counted(marked.withColumn("a", F.rand())),
    "above the state": counted(marked).withColumn("a", F.rand()),
    "without state": source.withColumn("a", F.rand()),
    "the batch's time": counted(marked.where("at < current_timestamp()")),
    "windows of windows": counted(counted(marked, "name").select(F.window_time("window").alias("at"))),
    "bounded join, then windows": counted(bounded),
    "order of rows": of_rows(
        "first(id)", "count(*)", "last(id)", "collect_list(id)", "max_by(id, at)", "min_by(id, at)"
    ),
    "order of equal values": of_rows("any_value(id)", "mode(name)"),
    "no order of rows": of_rows("max(id)", "collect_set(id)", *MODE_BY_ORDER),
    "a table": counted(marked.join(table, "id")),
    "first row of a table": counted(marked.join(table.dropDuplicates(["id"]), "id")),
    "a table in a subquery": counted(marked.where("id > (SELECT max(id) FROM places)")),
    "a range": counted(marked.join(spark.range(5), "id")),
    "a table above the state": counted(marked, "id").join(table, "id"),
    "a table without state": source.join(table, "id"),
}
spark.conf.set(CORRECTNESS, "false")
profiles = {name: profile_of(frame) for name, frame in build.items()}
assert spark.conf.get(CORRECTNESS) == "false"
profiles["windows of windows in update mode"] = profile_of(build["windows of windows"], output_mode="update")
found = {name: [one.random, one.late_in_chain, one.by_order, one.reads_tables] for name, one in profiles.items()}
sys.stdout.write(json.dumps(found))
