"""An application's calls of ``DataStreamWriter``, from which kinds recognise their outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from slackwater.core.sink import Traits, WriteContext
from slackwater.sinks.common.changes import unsupported
from slackwater.sinks.common.contract import Sink, of_any_query
from slackwater.sinks.common.registry import open_output

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from slackwater.sinks.common.contract import Startable


class Written(Protocol):
    @property
    def function(self) -> object | None: ...

    def onto(self, writer: DataStreamWriter, /, path: str | None = None) -> Startable: ...


@dataclass(frozen=True, slots=True)
class RecognisedSink(Sink):
    """An application's own writer; Spark writes with its settings.

    ``into``: a staged output's path.
    """

    writer: Written
    recognised: Mapping[str, str]
    into: str | None = None

    @property
    def called(self) -> object | None:
        return self.writer.function

    @property
    def kind(self) -> str:
        return self.recognised["kind"]

    @property
    def traits(self) -> Traits:
        output = open_output(self.recognised)
        return replace(output.traits, cuts=of_any_query(output).traits.cuts)

    def identity(self) -> Mapping[str, str]:
        return self.recognised

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> Startable:
        return self.writer.onto(writer, self.into)

    def staged(self, operation: str, /) -> RecognisedSink:
        path = of_any_query(open_output(self.recognised)).staged_path(operation)
        if path is None:
            raise unsupported(
                self.kind, "files of Spark's own file sink, or a table that Slackwater can change", self.kind
            )
        return replace(self, into=path)
