"""Spark catalogs (``spark.sql.catalog.NAME`` and below) that open without Spark.

From slackwater.toml; tables of other catalogs show nothing outside of a run. Names: Iceberg's "Spark Configuration",
section "Catalogs".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from slackwater.core.settings import spark_settings
from slackwater.sinks.common.password import CATALOGS

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
