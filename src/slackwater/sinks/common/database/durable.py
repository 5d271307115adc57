"""Whether tables keep their rows over a crash of the server: the sink's own, and those that the tasks have staged.

A server that restarts after a crash empties unlogged tables, and one that takes over for another may lack whole
tables, between the end of a task and the transaction, which therefore compares what is there with what was staged.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from slackwater.core.errors import PipelineError, StreamFailed

_UNLOGGED = """
SELECT c.oid::regclass::text FROM pg_class c
WHERE c.relpersistence = 'u' AND (c.oid = to_regclass(:name)
  OR c.oid IN (SELECT relid FROM pg_partition_tree(to_regclass(:name))))
ORDER BY 1
"""


def check_logged(connection: Connection, quoted: str, where: str) -> None:
    """Raises PipelineError for an unlogged table of PostgreSQL, or one with such partitions.

    A crash of the server, or a standby that takes over, leaves it empty, while the marker keeps its batches.
    """
    if connection.dialect.name != "postgresql":
        return
    found = connection.execute(text(_UNLOGGED), {"name": quoted}).scalars().all()
    if found:
        raise PipelineError(
            "sink-unlogged",
            "The table of the sink is unlogged: a crash of the server would empty it",
            where=where,
            expected="a table that is written to the write-ahead log",
            found=", ".join(found),
            hint="; ".join(f"ALTER TABLE {name} SET LOGGED" for name in found),
        )


@dataclass(frozen=True, slots=True)
class Staged:
    """A staged table, and how many rows the tasks have written to it."""

    table: str
    rows: int


def lost(where: str, expected: int, found: int | None) -> StreamFailed:
    """The error for a staged table with another number of rows; ``None`` for one that does not exist."""
    return StreamFailed(
        "sink-staged-lost",
        "The database has not kept the rows that the tasks of the batch staged; nothing of the batch is published",
        where=where,
        expected=f"{expected} rows",
        found="no table" if found is None else f"{found} rows",
        hint="the batch is run again; find out whether the server crashed, was restarted or failed over",
    )
