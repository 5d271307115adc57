"""The jars for Kafka, Delta and other connectors: a locked list, and a cache.

``locked.toml`` lists the permitted jars, with hashes; a jar with another hash is refused. Ivy, which is part of
PySpark, and Maven have their own repository addresses. Importing this package starts nothing and imports no pyspark.
"""

from __future__ import annotations

from slackwater.connectors.cache import resolve
from slackwater.connectors.locked import known

__all__ = ["known", "resolve"]
