"""The jars that Spark needs for Kafka, Delta and other connectors: a locked list, and a cache that fetches them.

Versions are not resolved here: ``locked.toml`` lists what may be fetched, with hashes, and a jar with another hash is
refused. No repository address is configured here either: Ivy, which is part of PySpark, and Maven have their own.
Importing this package starts nothing and does not import pyspark.
"""

from __future__ import annotations

from slackwater.connectors.cache import resolve
from slackwater.connectors.locked import known

__all__ = ["known", "resolve"]
