"""Use cases: which connectors there are for this machine's Spark, and fetching their jars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from slackwater import connectors
from slackwater.connectors.cache import JarCache, default_folder
from slackwater.connectors.locked import jars_of
from slackwater.errors import EnvironmentMissing
from slackwater.runtime.session import spark_version

NO_SPARK = "none"
"""In place of a version: only what does not depend on Spark."""


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector whose jars are locked. ``fetched`` counts those in the cache."""

    name: str
    coordinates: tuple[str, ...]
    fetched: int

    @property
    def complete(self) -> bool:
        """Whether nothing is left to fetch."""
        return self.fetched == len(self.coordinates)


def installed_spark() -> str:
    """The version of the installed PySpark, or ``NO_SPARK``."""
    try:
        return spark_version()
    except ModuleNotFoundError:
        return NO_SPARK


def list_connectors(spark: str) -> tuple[Connector, ...]:
    """The connectors for this version of Spark. Nothing is fetched."""
    cache = JarCache(default_folder())
    found = []
    for name in connectors.known(spark):
        jars = jars_of(name, spark)
        found.append(Connector(name, tuple(jar.coordinate for jar in jars), sum(cache.has(jar) for jar in jars)))
    return tuple(found)


def fetch_connectors(names: Sequence[str], spark: str, say: Callable[[str], None]) -> list[Path]:
    """Paths of the jars of these connectors, fetched where they are not there yet.

    Raises UsageError for an unknown name, EnvironmentMissing where a jar cannot be had.
    """
    if spark == NO_SPARK and not set(names) <= set(connectors.known(NO_SPARK)):
        raise EnvironmentMissing(
            "pyspark-missing",
            "Which jars a connector needs depends on Spark, and PySpark is not installed",
            hint="pip install 'slackwater[spark]', or name a version: --spark 4.1",
        )
    return connectors.resolve(names, spark, say)
