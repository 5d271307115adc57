"""The table of sinks in docs/sinks.md, from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slackwater.core.sink import CatalogueEntry
from slackwater.sinks.common.registry import catalogue

HEADING = """# Sinks

What each sink of `slackwater.sinks` guarantees over stops, kills and restarts, and why. `slackwater sinks` prints the
same; `slackwater status` and the start of a run warn of a guarantee below exactly-once. The tables are made from the
source. To update them: `scripts/generate`.

- **exactly-once**: after a kill, a restart or a rebuild the output holds each row once.
- **at-least-once**: no row is lost; rows of a batch that was interrupted may be there twice. The sink does not show
  what it holds, so a rebuild continues after the newest committed batch, and cannot continue after an older one.
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
In update and complete mode the rows of a key replace each other. A rebuild is exact in the sense of the mode: the final
table, newest row of each key, equals that of an uninterrupted run. In complete mode it replays every batch.

`all_of` computes a batch once and writes it into several outputs, one after the other. Each keeps its own mark, so
that a batch which was interrupted between two of them is written into those that lack it only. It can do what all of
them can; its guarantee is that of the weakest. `slackwater status` shows each.

A swap keeps the output that was replaced, for undo. Files and Delta tables are built in a hidden folder next to the
output. Files on HDFS and object stores are moved, each by itself, and switched by one put of their manifest; readers
that ignore the manifest see files of both outputs for that time. Iceberg tables are built on a branch of the same
table, whose dropped branches `expire_snapshots` cleans up; tables of PostgreSQL in the same schema. Views, privileges
and the comment of a table of PostgreSQL are kept; one with foreign keys, triggers, policies or publications of its own
is refused. A stream that reads replaced files takes all of them for new ones and has to be replayed as well. Rows that
other programs have written stay, or `apply` refuses without `--discard-others`.

Tables of PostgreSQL and JDBC, Kafka topics and batch functions have their newest batch in a marker next to the rows. If
it is deleted or restored from an older copy, no plan writes the rows a second time (`sink-marker-lost`): a table of
PostgreSQL is built again by `slackwater plan reset STREAM --from earliest --output swap`, another output has to be
emptied first; `slackwater status` prints the steps.

What a function of your own does in a crash, `slackwater audit` finds out: see [audit.md](audit.md).

`sinks.iceberg` takes a directory (a name with a slash, such as `"./hourly"`), which is a table of a Hadoop catalog
and needs no settings, or the name of a table in a catalog of yours, set up under `[spark]` in `slackwater.toml`:

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

Tables of a JDBC catalog on PostgreSQL or SQLite and of a Hadoop catalog are read, cut and swapped without Spark, by
pyiceberg with these settings; they must be in `slackwater.toml`, not in `--conf` alone. A secret of a catalog may be
`env:NAME` or `file:PATH`: it is read when it is needed, by Spark and by commands, and is not recorded. What a table
of another catalog holds (REST, Hive, Glue, ...; `opaque` in the list above) is known to Spark only: it is asked in
each batch, and a batch of a deleted or older checkpoint that it has already is refused (`iceberg-ahead`). Tables of
version 3 of Iceberg's format in a JDBC catalog show their newest batch and cannot be cut or swapped, because
pyiceberg cannot write them. Iceberg tables are in a directory on local disks and HDFS only: object stores have no
rename in one step. A commit of another writer while a batch is written makes the batch run again; one while an
operation works has it refused. Undo needs the snapshots from before the cut: `expire_snapshots` deletes them. What a
swap has replaced it keeps until `slackwater prune`.

The jars of Delta and Iceberg are locked and fetched for Spark 4.1, 4.0 and 3.5, those of Kafka for 4.3, 4.1 and 4.0,
of avro for 4.1 and 4.0, of S3 (`s3a`) for 4.1; with another Spark, set `spark.jars` or `spark.jars.packages` under
`[spark]` in `slackwater.toml`.

A stream whose sink is not in the list can be run without Slackwater and recorded by `slackwater.watch(spark, ...)`:
see [adopted.md](adopted.md).
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
