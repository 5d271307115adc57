"""What every sink fulfils: how Spark writes it, what it promises, and what makes it itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Delivery = Literal["exactly-once", "at-least-once"]


class Sink(Protocol):
    """What a stream is given as its sink."""

    @property
    def kind(self) -> str:
        """The sink's kind: ``files``, ..."""

    @property
    def delivery(self) -> Delivery:
        """What it promises over crashes and restarts."""

    @property
    def output_modes(self) -> tuple[str, ...]:
        """The output modes Spark lets it have."""

    def identity(self) -> Mapping[str, str]:
        """What makes it this sink and no other; kept in ``stream.json`` and the ledger."""

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """The writer with this sink set."""
