"""How Spark names the table of a sink: by its place in a catalog of the user's, or in one made for its directory."""

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
    """``sql`` is the name in SQL; ``settings`` are those of its catalog, empty for one that the user has set up.

    ``branch`` is the one that rows are written to.
    """

    sql: str
    settings: Mapping[str, str] = field(default_factory=dict)
    branch: str = MAIN

    @property
    def target(self) -> str:
        """The name in SQL of what rows are written to."""
        return self.sql if self.branch == MAIN else f"{self.sql}.{backquoted(f'branch_{self.branch}')}"

    def register(self, session: SparkSession) -> None:
        """Make the session know the catalog."""
        for key, value in self.settings.items():
            if session.conf.get(key, None) != value:
                session.conf.set(key, value)


def in_directory(location: str, branch: str = MAIN) -> TableName:
    """The table in a directory: a Hadoop catalog whose warehouse is the directory above has it under its name."""
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
