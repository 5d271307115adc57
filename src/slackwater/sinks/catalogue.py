"""All sinks with what each guarantees: the source of ``slackwater sinks``, of docs/sinks.md and of error messages.

A new sink adds its function to ``sinks/__init__.py`` and an entry, or one for each guarantee it can have, here.
"""

from __future__ import annotations

from slackwater.model.sink import CatalogueEntry
from slackwater.sinks.all_of.output import combined_traits
from slackwater.sinks.console import CONSOLE_TRAITS
from slackwater.sinks.delta.output import DELTA_TRAITS
from slackwater.sinks.files.output import FILES_TRAITS
from slackwater.sinks.foreach import FOREACH_TRAITS
from slackwater.sinks.foreach_batch.output import MARKED, UNMARKED
from slackwater.sinks.iceberg.output import CATALOG_TRAITS, ICEBERG_TRAITS
from slackwater.sinks.jdbc.output import JDBC_TRAITS
from slackwater.sinks.kafka.output import AT_LEAST_ONCE, EXACTLY_ONCE
from slackwater.sinks.memory import MEMORY_TRAITS
from slackwater.sinks.noop import NOOP_TRAITS
from slackwater.sinks.postgres.output import traits_of
from slackwater.sinks.table import FILE_TABLE_TRAITS, LOG_TABLE_TRAITS, OTHER_TABLE_TRAITS

CATALOGUE: tuple[CatalogueEntry, ...] = (
    CatalogueEntry("files", "files(format, path)", FILES_TRAITS, ("append",)),
    CatalogueEntry("delta", "delta(path)", DELTA_TRAITS, ("append", "complete")),
    CatalogueEntry("delta", "delta(path, keys=...)", DELTA_TRAITS, ("append", "update")),
    CatalogueEntry("iceberg", "iceberg(path)", ICEBERG_TRAITS, ("append", "complete")),
    CatalogueEntry("iceberg", "iceberg(path, keys=...)", ICEBERG_TRAITS, ("append", "update")),
    CatalogueEntry("iceberg", 'iceberg("catalog.db.table")', CATALOG_TRAITS, ("append", "complete")),
    CatalogueEntry("iceberg", 'iceberg("catalog.db.table", keys=...)', CATALOG_TRAITS, ("append", "update")),
    CatalogueEntry("postgres", "postgres(url, table, keep_batch_id=True)", traits_of(keep_batch_id=True), ("append",)),
    CatalogueEntry("postgres", "postgres(url, table)", traits_of(keep_batch_id=False), ("append", "complete")),
    CatalogueEntry("postgres", "postgres(url, table, keys=...)", traits_of(keep_batch_id=False), ("append", "update")),
    CatalogueEntry("jdbc", "jdbc(url, table)", JDBC_TRAITS, ("append", "complete")),
    CatalogueEntry("kafka", "kafka(topic, bootstrap_servers=..., exactly_once=True)", EXACTLY_ONCE),
    CatalogueEntry("foreach_batch", "foreach_batch(function, writes_to=url)", MARKED),
    CatalogueEntry(
        "all_of",
        "all_of(delta(...), postgres(..., keep_batch_id=True), ...)",
        combined_traits([DELTA_TRAITS, traits_of(keep_batch_id=True)]),
        ("append",),
    ),
    CatalogueEntry("table", 'table(name, format="parquet")', FILE_TABLE_TRAITS, ("append",)),
    CatalogueEntry("table", 'table(name, format="delta" or "iceberg")', LOG_TABLE_TRAITS, ("append", "complete")),
    CatalogueEntry("table", "table(name, format=ANOTHER)", OTHER_TABLE_TRAITS),
    CatalogueEntry("kafka", "kafka(topic, bootstrap_servers=...)", AT_LEAST_ONCE),
    CatalogueEntry("foreach_batch", "foreach_batch(function)", UNMARKED),
    CatalogueEntry("foreach", "foreach(function)", FOREACH_TRAITS),
    CatalogueEntry("console", "console()", CONSOLE_TRAITS),
    CatalogueEntry("memory", "memory(name)", MEMORY_TRAITS, ("append", "complete")),
    CatalogueEntry("noop", "noop()", NOOP_TRAITS),
)


def names() -> tuple[str, ...]:
    """The functions of ``slackwater.sinks`` that make a sink, in the order of the catalogue."""
    return tuple(dict.fromkeys(entry.name for entry in CATALOGUE))
