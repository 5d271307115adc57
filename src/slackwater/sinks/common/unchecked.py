"""The error of a table of which Spark's catalog shows the location, and whose log is not there."""

from __future__ import annotations

from slackwater.core.errors import SinkUnchecked


def table_unchecked(table: str, path: str, found: str) -> SinkUnchecked:
    """The error ``table-unchecked``: nothing is known of the batches of a table, such as ``table lake.t``."""
    return SinkUnchecked(
        "table-unchecked",
        f"could not check which batches {table} has",
        where=path,
        expected="the log of the table, at the location that Spark's catalog has of it",
        found=found,
        hint="no start is refused for it: Spark's own writer skips a batch that the table has",
    )
