"""An external system's problem with an output, as a Slackwater error for reading or writing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slackwater.core.errors import PipelineError, SinkUnchecked, SinkUnreadable, StreamFailed

TASK_ERROR = re.compile(r"\[slackwater (?P<code>[a-z-]+)\] (?P<text>[^\n]+)")
"""A Slackwater error in a task; only text passes from executor to driver."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error, raised as fits the action."""

    code: str
    message: str
    hint: str | None = None
    found: str | None = None

    def unreadable(self, where: str) -> SinkUnreadable:
        return SinkUnreadable(read_code(self.code), self.message, where=where, found=self.found, hint=self.hint)

    def failed(self, where: str) -> StreamFailed:
        return StreamFailed(self.code, self.message, where=where, found=self.found, hint=self.hint)


def unreadable(error: StreamFailed) -> SinkUnreadable:
    return SinkUnreadable(
        read_code(error.code), error.message, where=error.where, expected=error.expected, hint=error.hint
    )


def read_code(code: str) -> str:
    """An error's code while reading: a code decides the exit code, and reading has its own."""
    return "output-" + code.removeprefix("sink-")


def table_unchecked(table: str, path: str, found: str) -> SinkUnchecked:
    """The error for a table that could not be checked; ``table`` is, for example, ``table lake.t``."""
    return SinkUnchecked(
        "table-unchecked",
        f"could not check which batches {table} has",
        where=path,
        expected="the log of the table, at the location that Spark's catalog has of it",
        found=found,
        hint="no start is refused for it: Spark's own writer skips a batch that the table has",
    )


def not_readable_yet(library: str, location: str) -> PipelineError:
    return PipelineError(
        "output-absent",
        f"A stream cannot read this {library} table: it does not exist yet, so that its schema is unknown",
        where=location,
        hint="define the stream that writes it before the one that reads it, and run both",
    )
