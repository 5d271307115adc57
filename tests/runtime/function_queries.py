"""Queries whose plan names a function otherwise than their code: registered, partial, a method, an object."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tests.runtime.program_queries import Build, Sources, by_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
