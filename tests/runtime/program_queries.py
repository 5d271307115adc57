"""An edit of a query, and the queries that the edits of ``program_cases`` are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData

READING = "id LONG, station STRING, city STRING, at TIMESTAMP, seen TIMESTAMP, temp DOUBLE, rain DOUBLE, n LONG, m LONG"


@dataclass
class Sources:
    """The streams that the queries read, in folders of ``folder``."""

    spark: SparkSession
    folder: Path

    def files(self, name: str = "readings", schema: str = READING, kind: str = "json", **options: str) -> DataFrame:
        (self.folder / name).mkdir(exist_ok=True)
        return self.spark.readStream.schema(schema).format(kind).options(**options).load(str(self.folder / name))

    def marked(self, name: str = "readings", column: str = "at", delay: str = "1 hour") -> DataFrame:
        return self.files(name).withWatermark(column, delay)

    def table(self, where: str = "n > 0") -> DataFrame:
        (self.folder / "cities").mkdir(exist_ok=True)
        return self.spark.read.schema("city STRING, n LONG").json(str(self.folder / "cities")).where(where)


Build = Callable[[Sources], DataFrame]


@dataclass(frozen=True)
class Case:
    """An edit: the query before and after, the effect and the code of the gravest change (``None``: no change)."""

    name: str
    before: Build
    after: Build
    effect: str
    code: str | None = None
    text: str = ""
    conf: str = ""
    mode: str = "append"


Written = str | Callable[[], Column]
"""A column in SQL, or what makes it: a column can only be made where Spark runs."""


def _built(column: Written) -> Column:
    return F.expr(column) if isinstance(column, str) else column()


def by_window(rows: DataFrame, *columns: Column | str, window: Column | None = None) -> GroupedData:
    return rows.groupBy(F.window("at", "1 hour") if window is None else window, *columns)


def hourly(s: Sources, window: Column | None = None) -> DataFrame:
    return by_window(s.marked(), "station", window=window).agg(
        F.sum("n").alias("total"), F.count("*").alias("readings"), F.avg("temp").alias("temp")
    )


def keyed(*keys: Written) -> Build:
    return lambda s: by_window(s.marked(), *map(_built, keys)).agg(F.sum("n").alias("total"))


def totals(*aggregates: Written) -> Build:
    return lambda s: by_window(s.marked(), "station").agg(*map(_built, aggregates))


def sessions(gap: str) -> Build:
    return lambda s: by_window(
        s.marked(), "station", window=F.session_window("at", _built(gap) if "CASE" in gap else gap)
    ).count()


def windowed(*arguments: str, column: str = "at") -> Build:
    return lambda s: hourly(s, F.window(column, *arguments))


def marked(column: str = "at", delay: str = "1 hour") -> Build:
    return lambda s: by_window(s.marked(column=column, delay=delay), "station").count()


def filtered(*conditions: Written) -> Build:
    def build(s: Sources) -> DataFrame:
        rows = s.marked()
        for condition in conditions:
            rows = rows.where(_built(condition))
        return by_window(rows, "station").count()

    return build


def distinct(*columns: str, within: bool = False) -> Build:
    def build(s: Sources) -> DataFrame:
        rows = s.marked()
        return rows.dropDuplicatesWithinWatermark(list(columns)) if within else rows.dropDuplicates(list(columns))

    return build


def joined(
    on: str = "a.id = b.id AND b.at >= a.at AND b.at <= a.at + INTERVAL 1 HOUR",
    how: str = "inner",
    left: str = "a.n > 0",
    right: str = "b.n > 0",
    columns: str = "a.id, a.at, b.temp",
) -> Build:
    def build(s: Sources) -> DataFrame:
        first, second = s.marked("first").alias("a"), s.marked("second", delay="2 hours").alias("b")
        return first.where(left).join(second.where(right), F.expr(on), how).selectExpr(*columns.split(", "))

    return build


def passing(_: Any, frames: Iterable[pd.DataFrame], __: Any) -> Iterator[pd.DataFrame]:
    yield from frames


def with_state(
    output: str = "station STRING, n LONG, total LONG",
    state: str = "n LONG, total LONG",
    timeout: str = "NoTimeout",
    *,
    key: str = "station",
    function: Any = passing,
    columns: tuple[str, ...] = ("*",),
) -> Build:
    def build(s: Sources) -> DataFrame:
        rows = s.marked().selectExpr(*columns)
        return rows.groupBy(key).applyInPandasWithState(function, output, state, "append", timeout)

    return build


def cleaned_by_upper(s: Sources) -> DataFrame:
    @F.udf("string")
    def clean(station: str) -> str:
        return station.upper()

    return by_window(s.marked().withColumn("station", clean("station")), "station").count()


def cleaned_by_lower(s: Sources) -> DataFrame:
    @F.udf("string")
    def clean(station: str) -> str:
        return station.lower()

    return by_window(s.marked().withColumn("station", clean("station")), "station").count()


def cleaned_elsewhere(s: Sources) -> DataFrame:
    # The same function on other lines, with another name for its argument.

    @F.udf("string")
    def clean(name: str) -> str:
        """In capitals."""
        return name.upper()

    return by_window(s.marked().withColumn("station", clean("station")), "station").count()


def shown_by_upper(s: Sources) -> DataFrame:
    @F.udf("string")
    def show(station: str) -> str:
        return station.upper()

    return by_window(s.marked(), "station").count().withColumn("shown", show("station"))


def shown_by_lower(s: Sources) -> DataFrame:
    @F.udf("string")
    def show(station: str) -> str:
        return station.lower()

    return by_window(s.marked(), "station").count().withColumn("shown", show("station"))


def rounded_means(digits: int) -> Build:
    def build(s: Sources) -> DataFrame:
        mean = F.sum("temp") / F.count("temp")
        return by_window(s.marked(), "station").agg(F.round(mean, digits).alias("mean"))

    return build


def none_rows(s: Sources) -> DataFrame:
    return by_window(s.files(), "station").count()


def typed_rows(s: Sources) -> DataFrame:
    return by_window(
        s.files(schema=READING.replace("station STRING", "station LONG")).withWatermark("at", "1 hour"), "station"
    ).agg(F.sum("n").alias("total"))


def below_rows(s: Sources) -> DataFrame:
    return by_window(s.files().where("temp > 4").withWatermark("at", "1 hour"), "station").count()


def keys_rows(city: str) -> Build:
    return lambda s: by_window(s.marked(), "city").count().where(f"city = '{city}'")


def results_rows(n: int) -> Build:
    return lambda s: by_window(s.marked(), "city").count().where(f"count > {n}")


def exploded_rows(by: str) -> Build:
    return lambda s: by_window(s.marked().withColumn("part", F.explode(F.split("city", by))), "part").count()


def static_rows(where: str) -> Build:
    return lambda s: by_window(s.marked().drop("n").join(s.table(where), "city"), "station").count()


def every_rows(s: Sources) -> DataFrame:
    return s.marked().select("id", "at").dropDuplicates()


def more_rows(s: Sources) -> DataFrame:
    return s.marked().select("id", "at", "n").dropDuplicates()


def itself_rows(a: str, b: str) -> Build:
    return lambda s: (
        s.marked().where(a).selectExpr("id", "at AS t").join(s.marked().where(b).selectExpr("id", "at AS u"), "id")
    )


def plain_rows(s: Sources) -> DataFrame:
    return s.marked().select("station", "n")


def twice_rows(s: Sources, *, marked: bool = True) -> DataFrame:
    return by_window((s.marked() if marked else s.files()).dropDuplicates(["id", "at"]), "station").count()


def limited_rows(n: int) -> Build:
    return lambda s: s.files().select("n").limit(n)


def one_rows(*names: str, **options: str) -> Build:
    return lambda s: by_window(s.files(*names, **options).withWatermark("at", "1 hour"), "station").count()


def both_rows(a: str, b: str) -> Build:
    return lambda s: by_window(s.files(a).union(s.files(b)).withWatermark("at", "1 hour"), "station").count()


def rows_rows(where: str) -> Build:
    return lambda s: s.files().where(where).select("id", "n")


# Queries whose plan names a function otherwise than their code: registered, partial, a method, an object.


class Suffix:
    """Adds one, as an object that is called and by a method."""

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix

    def __call__(self, name: str) -> str:
        return name + self.suffix

    def added(self, name: str) -> str:
        return name + self.suffix


def joined_to(suffix: str, name: str) -> str:
    return name + suffix


def registered_upper(s: Sources) -> DataFrame:
    s.spark.udf.register("tidy", lambda name: name.upper())
    return _counted(s, "tidy(station)")


def registered_lower(s: Sources) -> DataFrame:
    s.spark.udf.register("tidy", lambda name: name.lower())
    return _counted(s, "tidy(station)")


def registered_and_shown(s: Sources) -> DataFrame:
    s.spark.udf.register("tidy", lambda text: text.upper())
    return _counted(s, "tidy(station)").withColumn("shown", F.lit(1))


def objects(suffix: str) -> Build:
    def build(s: Sources) -> DataFrame:
        tidy = F.udf(Suffix(suffix), "string")
        return by_window(s.marked().withColumn("station", tidy("station")), "station").count()

    return build


def methods(suffix: str) -> Build:
    def build(s: Sources) -> DataFrame:
        tidy = F.udf(Suffix(suffix).added, "string")
        return by_window(s.marked().withColumn("station", tidy("station")), "station").count()

    return build


def partials(suffix: str) -> Build:
    def build(s: Sources) -> DataFrame:
        tidy = F.udf(partial(joined_to, suffix), "string")
        return by_window(s.marked().withColumn("station", tidy("station")), "station").count()

    return build


def _counted(s: Sources, expression: str) -> DataFrame:
    return by_window(s.marked().withColumn("station", F.expr(expression)), "station").count()
