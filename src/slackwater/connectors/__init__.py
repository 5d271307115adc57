"""The jars that Spark needs to speak to Kafka, Delta and the like: a locked list, and their fetching into a cache.

Nothing here resolves versions: what may be fetched stands in ``locked.toml`` with its hash, and a jar with another hash
is refused. No address of a repository stands here either; Ivy, which PySpark carries, and Maven know theirs. Importing
this package starts nothing and imports no pyspark.
"""

from __future__ import annotations

from slackwater.connectors.cache import resolve
from slackwater.connectors.locked import known

__all__ = ["known", "resolve"]
