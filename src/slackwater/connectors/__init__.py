"""The jars for Kafka, Delta and other connectors: a locked list, and a cache.

``locked.toml`` lists the permitted jars; a jar with a different hash is refused. Importing this package starts
nothing and imports no pyspark.
"""

from slackwater.connectors.cache import known, resolve

__all__ = ["known", "resolve"]
