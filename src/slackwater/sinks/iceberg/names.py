"""Spark's names of a sink's table: in a user's catalog, or in a catalog made for a directory.

Catalogs in slackwater.toml (``spark.sql.catalog.NAME`` and below) open without Spark; tables of other catalogs show
nothing outside of a run. Names: Iceberg's "Spark Configuration", section "Catalogs".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from slackwater.core.settings import spark_settings
from slackwater.sinks.common.batch_function import backquoted
from slackwater.sinks.common.problem import CATALOGS
from slackwater.sinks.iceberg.metadata import MAIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"


@dataclass(frozen=True, slots=True)
class IcebergName:
    """``sql`` is the SQL name; ``settings`` are its catalog's, empty for a user's. ``branch`` is written to."""

    sql: str
    settings: Mapping[str, str] = field(default_factory=dict)
    branch: str = MAIN

    @property
    def target(self) -> str:
        return self.sql if self.branch == MAIN else f"{self.sql}.{backquoted(f'branch_{self.branch}')}"

    def register(self, session: SparkSession) -> None:
        for key, value in self.settings.items():
            if session.conf.get(key, None) != value:
                session.conf.set(key, value)


def in_directory(location: str, branch: str = MAIN) -> IcebergName:
    warehouse, _, name = location.rstrip("/").rpartition("/")
    catalog = f"slackwater_{sha256(warehouse.encode()).hexdigest()[:12]}"
    key = f"spark.sql.catalog.{catalog}"
    return IcebergName(
        f"{catalog}.{backquoted(name)}",
        {
            key: CATALOG_CLASS,
            f"{key}.type": "hadoop",
            f"{key}.warehouse": warehouse or "/",
            # A batch must see what the batch before it has committed.
            f"{key}.cache-enabled": "false",
        },
        branch,
    )


Kind = Literal["jdbc", "hadoop"]
_IMPLEMENTATIONS: Mapping[str, Kind] = {
    "org.apache.iceberg.jdbc.JdbcCatalog": "jdbc",
    "org.apache.iceberg.hadoop.HadoopCatalog": "hadoop",
}
JDBC_URL = re.compile(
    r"jdbc:(?:postgresql://(?P<hosts>[^/?]*)/(?P<database>[^?]*)|sqlite:(?P<file>/[^?]*))(?:\?(?P<query>.*))?"
)
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """``properties`` are Spark's, without prefix; secrets may be references."""

    name: str
    kind: Kind
    properties: Mapping[str, str]

    def folder_of(self, identifier: tuple[str, ...]) -> str:
        return "/".join((self.properties["warehouse"].rstrip("/"), *identifier))

    @property
    def database_file(self) -> str | None:
        match = JDBC_URL.fullmatch(self.properties.get("uri", ""))
        return match["file"] if match else None


def parts_of(table: str) -> tuple[str, ...]:
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(table))


def settings_of(catalog: str) -> CatalogSettings | None:
    """The catalog's settings, ``None`` if only Spark can open it. Raises SettingsError."""
    prefix = f"{CATALOGS}{catalog}."
    properties = {key.removeprefix(prefix): value for key, value in spark_settings().items() if key.startswith(prefix)}
    named = properties.get("type", "").lower()
    kind = _IMPLEMENTATIONS.get(properties.get("catalog-impl", ""))
    kind = kind or next((one for one in _IMPLEMENTATIONS.values() if one == named), None)
    known = {"hadoop": "warehouse" in properties, "jdbc": bool(JDBC_URL.fullmatch(properties.get("uri", "")))}
    return CatalogSettings(catalog, kind, properties) if kind is not None and known[kind] else None
