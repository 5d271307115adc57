"""Errors of tables: one whose log is not where Spark's catalog has the table, and one that does not exist yet."""

from __future__ import annotations

from slackwater.core.errors import PipelineError, SinkUnchecked


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


def not_readable_yet(library: str, location: str) -> PipelineError:
    """The error of a stream that reads a table before the stream that writes it has created it."""
    return PipelineError(
        "output-absent",
        f"A stream cannot read this {library} table: it does not exist yet, so that its schema is unknown",
        where=location,
        hint="define the stream that writes it before the one that reads it, and run both",
    )
