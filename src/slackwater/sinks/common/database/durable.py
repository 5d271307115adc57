"""Detects rows lost in a server crash.

A crash empties unlogged tables, and a failover may lose tables, between task and transaction, which therefore compares
counts.
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
    """Raises PipelineError for an unlogged table or partition.

    A crash or failover empties it, while the marker keeps its batches.
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
    table: str
    rows: int


def lost(where: str, expected: int, found: int | None) -> StreamFailed:
    """The error for lost rows; ``found`` ``None``: the staged table does not exist."""
    return StreamFailed(
        "sink-staged-lost",
        "The database has not kept the rows that the tasks of the batch staged; nothing of the batch is published",
        where=where,
        expected=f"{expected} rows",
        found="no table" if found is None else f"{found} rows",
        hint="the batch is run again; find out whether the server crashed, was restarted or failed over",
    )
