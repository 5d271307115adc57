"""What an application gave to a ``DataStreamWriter``, from which each kind of sink recognises its own output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from slackwater.core.sink import Traits, WriteContext
from slackwater.sinks.common.changes import unsupported
from slackwater.sinks.common.contract import StagedByPath, of_any_query
from slackwater.sinks.common.registry import open_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from slackwater.sinks.common.contract import Startable


class Written(Protocol):
    """What an application gave to its own writer."""

    @property
    def function(self) -> object | None:
        """The function that its rows are given to."""

    def onto(self, writer: DataStreamWriter, /, path: str | None = None) -> Startable:
        """Another writer, given the same; ``path`` replaces the path or table into which it writes."""


@dataclass(frozen=True, slots=True)
class RecognisedSink:
    """The sink that the application's own writer has: Spark writes it as the application said.

    ``into``: the path of a staged output, which it writes in place of its own.
    """

    writer: Written
    recognised: Mapping[str, str]
    output_modes: tuple[str, ...] = ("append", "update", "complete")
    connectors: tuple[str, ...] = field(default=())
    into: str | None = None

    @property
    def function(self) -> object | None:
        """The application's function that the rows are given to."""
        return self.writer.function

    @property
    def kind(self) -> str:
        """The kind of the recognised output."""
        return self.recognised["kind"]

    @property
    def traits(self) -> Traits:
        """What the output can do, and what plans can do to it."""
        output = open_output(self.recognised)
        return replace(output.traits, cuts=of_any_query(output).traits.cuts)

    def identity(self) -> Mapping[str, str]:
        """As it was recognised."""
        return self.recognised

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Nothing: Spark checks what its own writer is given."""

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> Startable:
        """The writer, given what the application gave to its own one."""
        return self.writer.onto(writer, self.into)

    def staged(self, operation: str, /) -> RecognisedSink:
        """The same writer into the staged output of an operation. Raises Refused for an output without staging."""
        output = of_any_query(open_output(self.recognised))
        if not isinstance(output, StagedByPath):
            raise unsupported(
                self.kind, "files of Spark's own file sink, or a table that Slackwater can change", self.kind
            )
        return replace(self, into=output.staged_path(operation))
