"""The table of sinks in docs/sinks.md, from the catalogue.

python -m tests.support.sink_table > docs/sinks.md
"""

from __future__ import annotations

import sys

from slackwater.cli.render_sinks import abilities
from slackwater.model.sink import CatalogueEntry
from slackwater.sinks.catalogue import CATALOGUE

HEADING = """# Sinks

What each sink of `slackwater.sinks` guarantees over stops, kills and restarts, and why. `slackwater sinks` prints the
same; `slackwater status` and the start of a run warn of a guarantee below exactly-once. Output modes are those that
Spark allows. The table is made from the source; a test compares them. To update it:
`python -m tests.support.sink_table > docs/sinks.md`.

- **exactly-once**: after a kill, a restart or a rebuild the output holds each row once.
- **at-least-once**: no row is lost; rows of a batch that was interrupted may be there twice. The sink does not show
  what it holds, so a rebuild continues after the newest committed batch, and cannot continue after an older one.
- **none**: the sink keeps no rows, or not over a restart.

| sink | guarantee | why | output modes | traits |
|---|---|---|---|---|
"""

NOTES = """
In update and complete mode the rows of a key replace each other. A rebuild is exact in the sense of the mode: the final
table, newest row of each key, equals that of an uninterrupted run. In complete mode it replays every batch.

`all_of` computes a batch once and writes it into several outputs, one after the other; it takes the sinks that "can be
one of several outputs". Each keeps its own mark, so that a batch which was interrupted between two of them is written
into those that lack it only. It can do what all of them can; its guarantee is that of the weakest. `slackwater status`
shows each.

"New output can be put in place in one step" means that a stream can be run again into an output of its own beside the
real one, which it then replaces; the old one is kept for undo. Files and Delta tables are built in a hidden folder
beside the output, on local disks only; Iceberg tables in a directory on a branch of the same table, whose dropped
branches `expire_snapshots` cleans up; tables of PostgreSQL in the same schema. Views, privileges and the comment of a
table of PostgreSQL are kept; one with foreign keys, triggers, policies or publications of its own is refused. A stream
that reads replaced files takes all of them for new ones and has to be replayed as well.

What a function of your own does in a crash, `slackwater audit` finds out: see [audit.md](audit.md).

`sinks.iceberg` takes a directory (a name with a slash, such as `"./hourly"`), which is a table of a Hadoop catalog
and needs no settings, or the name of a table in a catalog of yours, set up under `[spark]` in `slackwater.toml`
(REST, JDBC, Hive, Glue, ...). The driver of a JDBC catalog on PostgreSQL is a connector: `connectors = ["postgresql"]`
in `slackwater.toml`. Hadoop catalogs and JDBC ones on PostgreSQL are tested; REST catalogs are not. What such a table
holds is known to its catalog only: it is asked in each batch, and a batch of a deleted or older checkpoint that it has
already is refused (`iceberg-ahead`). Iceberg tables are in a
directory on local disks and HDFS only: object stores have no rename in one step. A commit of another writer while a
batch is written makes the batch run again. Undo needs the snapshots from before the cut: `expire_snapshots` deletes
them. What a swap has replaced it keeps until `slackwater prune`.

The jars of Delta and Iceberg are locked and fetched for Spark 4.1, 4.0 and 3.5, those of Kafka for 4.1 and 4.0; with
another Spark, set `spark.jars` or `spark.jars.packages` under `[spark]` in `slackwater.toml`.

A stream whose sink is not in the list can be run without Slackwater and recorded by `slackwater.watch(spark, ...)`:
see [adopted.md](adopted.md).
"""


def page() -> str:
    """``docs/sinks.md``."""
    return HEADING + "\n".join(_row(entry) for entry in CATALOGUE) + "\n" + NOTES


def _row(entry: CatalogueEntry) -> str:
    delivery = entry.traits.delivery
    modes = ", ".join(entry.output_modes)
    return f"| `{entry.call}` | {delivery.guarantee} | {delivery.reason} | {modes} | {abilities(entry.traits)} |"


if __name__ == "__main__":
    sys.stdout.write(page())
