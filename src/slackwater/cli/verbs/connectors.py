"""``slackwater connectors``: the jars for Kafka and other sources and sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slackwater import connectors
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import err, out, prepare, print_json, write
from slackwater.connectors.cache import JarCache, default_folder, jars_of
from slackwater.core.errors import EnvironmentMissing
from slackwater.runtime.session.options import spark_version

NO_SPARK = "none"
"""A version that selects only jars without a dependency on Spark."""
SCHEMA = "slackwater.connectors/1"


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector with locked jars; ``fetched`` are in the cache."""

    name: str
    coordinates: tuple[str, ...]
    fetched: int

    @property
    def complete(self) -> bool:
        return self.fetched == len(self.coordinates)


def installed_spark() -> str:
    try:
        return spark_version()
    except ModuleNotFoundError:
        return NO_SPARK


def list_connectors(spark: str) -> tuple[Connector, ...]:
    """The connectors with their locked jars; nothing is fetched."""
    cache = JarCache(default_folder())
    found = []
    for name in connectors.known(spark):
        jars = jars_of(name, spark)
        found.append(Connector(name, tuple(jar.coordinate for jar in jars), sum(cache.has(jar) for jar in jars)))
    return tuple(found)


def fetch_connectors(names: Sequence[str], spark: str, say: Callable[[str], None]) -> list[Path]:
    """Raises UsageError for an unknown name, EnvironmentMissing if a jar cannot be had."""
    if spark == NO_SPARK and not set(names) <= set(connectors.known(NO_SPARK)):
        raise EnvironmentMissing(
            "pyspark-missing",
            "Which jars a connector needs depends on Spark, and PySpark is not installed",
            hint="pip install 'pyspark<4.2' pandas 'protobuf<7'; or, with Maven, name a version: --spark 4.1",
        )
    return connectors.resolve(names, spark, say)


def list_document(spark: str, connectors: Sequence[Connector]) -> dict[str, Any]:
    listed = [{"name": one.name, "jars": list(one.coordinates), "fetched": one.fetched} for one in connectors]
    return {"schema": SCHEMA, "spark": spark, "connectors": listed}


def fetch_document(spark: str, paths: Sequence[Path]) -> dict[str, Any]:
    return {"schema": SCHEMA, "spark": spark, "paths": [str(path) for path in paths]}


def list_(*, spark: str | None, home: str | None, shown_as: Format) -> int:
    prepare(home, shown_as)
    version = spark or installed_spark()
    found = list_connectors(version)
    if shown_as is Format.JSON:
        print_json(list_document(version, found))
        return 0
    for one in found:
        jars = len(one.coordinates)
        there = "fetched" if one.complete else f"{one.fetched} of {jars} fetched"
        out().print(f"{one.name:<14} {jars:>2} jars  {there}")
    return 0


def fetch(*, names: list[str], spark: str | None, home: str | None, shown_as: Format) -> int:
    prepare(home, shown_as)
    version = spark or installed_spark()
    paths = fetch_connectors(names, version, lambda text: err().print(text))
    if shown_as is Format.JSON:
        print_json(fetch_document(version, paths))
        return 0
    for path in paths:
        write(f"{path}\n")
    return 0
