"""The table of sinks in docs/sinks.md, from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slackwater.core.sink import CatalogueEntry
from slackwater.sinks.common.registry import catalogue

HEADING = """# Sinks

The guarantees of each sink of `slackwater.sinks`, with the reasons; `slackwater sinks` prints the same.
`slackwater status` and the start of a run warn of a guarantee below exactly-once.

- **exactly-once**: after a kill, a restart or a rebuild the output has each row once.
- **at-least-once**: no row is lost; rows of an interrupted batch may be there twice. The sink does not show its newest
  batch, so a rebuild can continue only after the newest committed batch.
- **none**: the sink keeps no rows, or not over a restart.

"""

COLUMNS = {
    "reports_last_batch": ("shows", "the output itself shows which batch was written last, without the checkpoint"),
    "skips_known_batches": ("skips", "a batch that the output has is not written a second time"),
    "reads_known_batches": (
        "reads",
        "such a batch is run all the same, so that the watermark misses none of its rows",
    ),
    "cuts": ("cuts", "whole batches can be removed and restored"),
    "swaps": ("swaps", "the stream can be run again into a staged output, which then replaces the real one"),
    "one_writer": ("alone", "only one stream may write to it"),
    "combines": ("combines", "it can be one of the outputs of `all_of`"),
    "continuous": ("continuous", "Spark can write it in continuous processing"),
    "real_time": ("real-time", "Spark 4.1 and later can write it in real-time mode"),
}
"""The heading of each trait and what it means, in the order of the columns."""
MODES = ("append", "update", "complete")
TICK = "✓"
LEFT = 2
"""Columns of words, before those of ticks."""

NOTES = """
In update and complete mode the rows of a key replace each other. After a rebuild the final table, with the newest row
of each key, equals the table of an uninterrupted run. In complete mode a rebuild replays every batch.

`all_of` computes a batch once and writes it into several outputs, one after the other. Each output has its own mark: an
interrupted batch is written only into the outputs that lack it. It has the traits that all outputs have, and the
weakest guarantee. `slackwater status` shows each output.

A swap keeps the replaced output for undo. Files and Delta tables are built in a hidden folder next to the output,
Iceberg tables on a branch of the same table (`expire_snapshots` cleans up dropped branches), PostgreSQL tables in the
same schema. Files on HDFS and object stores are moved one by one ([limits](limits.md#sinks)). Views, privileges and the
comment of a PostgreSQL table are kept; a table with foreign keys, triggers, policies or publications is refused. A
stream that reads replaced files takes all of them for new files and has to be replayed as well. Rows from other
programs stay, or `apply` refuses without `--discard-others`.

PostgreSQL and JDBC tables, Kafka topics and batch functions have their newest batch in a marker next to the rows. If
the marker is deleted or restored from an older copy, no plan writes the rows a second time
([`sink-marker-lost`](errors.md#sink-marker-lost)).

[`slackwater audit`](audit.md) shows how your own function behaves in a crash.

`sinks.iceberg` takes a directory (a name with a slash, such as `"./hourly"`; a table of a Hadoop catalog, without
settings), or the name of a table in your own catalog, set up under `[spark]` in `slackwater.toml`:

```toml
connectors = ["postgresql"]

[spark]
"spark.sql.catalog.lake" = "org.apache.iceberg.spark.SparkCatalog"
"spark.sql.catalog.lake.type" = "jdbc"
"spark.sql.catalog.lake.uri" = "jdbc:postgresql://db.example.com:5432/lake"
"spark.sql.catalog.lake.jdbc.user" = "spark"
"spark.sql.catalog.lake.jdbc.password" = "env:LAKE_PASSWORD"
"spark.sql.catalog.lake.warehouse" = "s3://lake"
```

Tables of a Hadoop catalog, and of a JDBC catalog on PostgreSQL or SQLite, are read, cut and swapped without Spark, by
pyiceberg with these settings; they must be in `slackwater.toml`, not in `--conf` alone. A catalog secret may be
`env:NAME` or `file:PATH`: it is read when needed and not recorded. A table of another catalog (REST, Hive, Glue, ...;
`opaque` in the list above) can be read only by Spark, in each batch: a batch of a deleted or older checkpoint that is
already in the table is refused (`iceberg-ahead`). Tables of Iceberg's format version 3 in a JDBC catalog show their
newest batch but cannot be cut or swapped, because pyiceberg cannot write them. Directories of Iceberg tables must be on
local disks or HDFS. If another writer commits while a batch is written, the batch runs again; if it commits during an
operation, the operation is refused. An undo needs the snapshots from before the cut, which `expire_snapshots` deletes;
the snapshots replaced by a swap stay until `slackwater prune`.

The jars of Delta and Iceberg are locked and fetched for Spark 4.1, 4.0 and 3.5, Kafka's for 4.3, 4.1 and 4.0, avro's
for 4.1 and 4.0, those of S3 (`s3a`) for 4.1; with a different Spark, set `spark.jars` or `spark.jars.packages` under
`[spark]` in `slackwater.toml`.

A stream with any other sink can be run without Slackwater and recorded by
[`slackwater.watch(spark, ...)`](adopted.md).
"""


def page() -> str:
    """``docs/sinks.md``."""
    entries = catalogue()
    return HEADING + "\n\n".join([_legend(), _abilities(entries), "Why:", _reasons(entries)]) + "\n" + NOTES


def _legend() -> str:
    lines = [f"- **{heading}**: {meaning}." for heading, meaning in COLUMNS.values()]
    return "\n".join(["The other columns are the output modes that Spark allows, and traits of the sink:", "", *lines])


def _abilities(entries: Sequence[CatalogueEntry]) -> str:
    headings = ("sink", "guarantee", *MODES, *(heading for heading, _ in COLUMNS.values()))
    return "\n".join([_row(headings), _rule(headings), *(_row(_ticked(entry)) for entry in entries)])


def _ticked(entry: CatalogueEntry) -> tuple[str, ...]:
    modes = (mode in entry.output_modes for mode in MODES)
    traits = (bool(getattr(entry.traits, trait)) for trait in COLUMNS)
    return f"`{entry.call}`", entry.traits.delivery.guarantee, *(TICK if one else "" for one in (*modes, *traits))


def _reasons(entries: Sequence[CatalogueEntry]) -> str:
    """Each reason once, with the sinks that have it."""
    calls: dict[str, list[str]] = {}
    for entry in entries:
        calls.setdefault(entry.traits.delivery.reason, []).append(f"`{entry.call}`")
    return "\n".join(f"- {', '.join(sinks)}: {reason}." for reason, sinks in calls.items())


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(headings: Sequence[str]) -> str:
    return _row("---" if column < LEFT else ":-:" for column in range(len(headings)))
