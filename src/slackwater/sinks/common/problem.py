"""What another system reports about a sink's output, as errors of ours: one for reading it, one for writing it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slackwater.core.errors import PipelineError, SinkUnchecked, SinkUnreadable, StreamFailed

TASK_ERROR = re.compile(r"\[slackwater (?P<code>[a-z-]+)\] (?P<text>[^\n]+)")
"""How a task names an error of ours; the only way from an executor to the driver is the text."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error to be raised, as a kind that suits what was being done."""

    code: str
    message: str
    hint: str | None = None
    found: str | None = None

    def unreadable(self, where: str) -> SinkUnreadable:
        """The error for reading what the output holds."""
        return SinkUnreadable(read_code(self.code), self.message, where=where, found=self.found, hint=self.hint)

    def failed(self, where: str) -> StreamFailed:
        """The error for a query that cannot be started or has ended."""
        return StreamFailed(self.code, self.message, where=where, found=self.found, hint=self.hint)


def unreadable(error: StreamFailed) -> SinkUnreadable:
    """An error for writing as the one for reading."""
    return SinkUnreadable(
        read_code(error.code), error.message, where=error.where, expected=error.expected, hint=error.hint
    )


def read_code(code: str) -> str:
    """The code of an error that was met while reading: a code has one exit code, and reading another than writing."""
    return "output-" + code.removeprefix("sink-")


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
