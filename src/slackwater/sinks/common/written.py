"""What an application gave to a ``DataStreamWriter``, from which each kind of sink recognises its own output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slackwater.core.sink import Traits, WriteContext
from slackwater.sinks.common.registry import open_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.sinks.common.contract import Startable


@dataclass(frozen=True, slots=True)
class RecognisedSink:
    """The sink that the application's own writer has: Spark writes it as the application said."""

    writer: Startable
    recognised: Mapping[str, str]
    output_modes: tuple[str, ...] = ("append", "update", "complete")
    connectors: tuple[str, ...] = field(default=())

    @property
    def kind(self) -> str:
        """The kind of the recognised output."""
        return self.recognised["kind"]

    @property
    def traits(self) -> Traits:
        """What the output can do."""
        return open_output(self.recognised).traits

    def identity(self) -> Mapping[str, str]:
        """As it was recognised."""
        return self.recognised

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Nothing: Spark checks what its own writer is given."""

    def attach(self, _writer: object, _context: WriteContext, /) -> Startable:
        """The application's own writer."""
        return self.writer
