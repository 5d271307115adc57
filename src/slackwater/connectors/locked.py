"""The locked list: each connector's jars by Spark version, with hashes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from slackwater.core.errors import EnvironmentMissing, UsageError

FILE_NAME = "locked.toml"
ANY_SPARK = "any"
"""Connectors that are the same for every Spark."""


@dataclass(frozen=True, slots=True)
class Jar:
    """A file of a Maven repository, with the only accepted hash."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def repository_path(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


def known(spark_version: str) -> tuple[str, ...]:
    """Sorted names of the connectors locked for this Spark (``4.1`` or ``4.1.3``)."""
    return tuple(sorted(_connectors(spark_version)))


def jars_of(name: str, spark_version: str) -> tuple[Jar, ...]:
    """Raises UsageError for an unknown name, EnvironmentMissing for an unknown Spark."""
    connectors = _connectors(spark_version)
    if name in connectors:
        return connectors[name]
    if any(name in table for table in _locked().values()):
        raise EnvironmentMissing(
            "connector-not-locked",
            f"The jars of connector {name!r} are not locked for Spark {_minor(spark_version)}",
            expected=f"Spark {', '.join(minor for minor, table in _locked().items() if name in table)}",
            found=spark_version,
            hint="install a PySpark of an expected version, or provide the jars: set spark.jars or "
            "spark.jars.packages in slackwater.toml under [spark]",
        )
    raise UsageError(
        "connector-unknown",
        f"There is no connector named {name!r}",
        expected=f"one of {', '.join(known(spark_version))}",
        found=name,
        hint="for other jars, set spark.jars or spark.jars.packages in slackwater.toml under [spark]",
    )


def parse(text: str) -> Mapping[str, Mapping[str, tuple[Jar, ...]]]:
    """The jars by Spark's minor version (or ``any``) and connector."""
    return {
        minor: {name: tuple(_jar(*entry) for entry in entries) for name, entries in connectors.items()}
        for minor, connectors in tomllib.loads(text).items()
    }


def _jar(coordinate: str, sha256: str) -> Jar:
    group, artifact, version = coordinate.split(":")
    return Jar(group, artifact, version, sha256)


@cache
def _locked() -> Mapping[str, Mapping[str, tuple[Jar, ...]]]:
    return parse(resources.files("slackwater.connectors").joinpath(FILE_NAME).read_text(encoding="utf-8"))


def _connectors(spark_version: str) -> dict[str, tuple[Jar, ...]]:
    return {**_locked()[ANY_SPARK], **_locked().get(_minor(spark_version), {})}


def _minor(spark_version: str) -> str:
    return ".".join(spark_version.split(".")[:2])
