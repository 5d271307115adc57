"""The document ``slackwater.connectors/1``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slackwater.app.fetch_connectors import Connector

SCHEMA = "slackwater.connectors/1"


def list_document(spark: str, connectors: Sequence[Connector]) -> dict[str, Any]:
    """The connectors for a version of Spark."""
    listed = [{"name": one.name, "jars": list(one.coordinates), "fetched": one.fetched} for one in connectors]
    return {"schema": SCHEMA, "spark": spark, "connectors": listed}


def fetch_document(spark: str, paths: Sequence[Path]) -> dict[str, Any]:
    """The jars of the connectors that were asked for."""
    return {"schema": SCHEMA, "spark": spark, "paths": [str(path) for path in paths]}
