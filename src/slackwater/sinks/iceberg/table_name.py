"""Spark's names of a sink's table: in a user's catalog, or in a catalog made for a directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from slackwater.sinks.common.batch_function import backquoted
from slackwater.sinks.iceberg.metadata import MAIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"


@dataclass(frozen=True, slots=True)
class TableName:
    """``sql`` is the SQL name; ``settings`` are its catalog's, empty for a user's.

    ``branch`` is written to.
    """

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


def in_directory(location: str, branch: str = MAIN) -> TableName:
    warehouse, _, name = location.rstrip("/").rpartition("/")
    catalog = f"slackwater_{sha256(warehouse.encode()).hexdigest()[:12]}"
    key = f"spark.sql.catalog.{catalog}"
    return TableName(
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
