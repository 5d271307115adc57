"""What a table of any database holds: its newest batch and its owner, both from the marker's row."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.errors import PipelineError, SinkUnreadable
from slackwater.model.sink import Delivery, Traits
from slackwater.sinks.database.address import Address, address_in
from slackwater.sinks.database.marked import MarkedTarget
from slackwater.sinks.database.marker import Marker
from slackwater.sinks.uncut import UncutOutput

JDBC_TRAITS = Traits(
    Delivery("exactly-once", "a batch is published in one transaction with its id in the marker table"),
    tells_written=True,
    skips_known_batches=True,
    cuts=False,
    swaps=False,
    reads_known_batches=True,
    combines=True,
)


def open_jdbc_output(identity: Mapping[str, str]) -> JdbcOutput:
    """The output of a recorded identity of kind ``jdbc``. Raises SinkUnreadable if the identity is incomplete."""
    if not identity.get("url") or not identity.get("table"):
        raise SinkUnreadable(
            "sink-identity",
            "The recorded identity of the sink has no url or no table",
            expected='{"kind": "jdbc", "url": ..., "table": ...}',
            found=str(dict(identity)),
        )
    return JdbcOutput(address_in(identity), identity["table"])


class JdbcOutput(UncutOutput[MarkedTarget]):
    """One table. It has no batch ids, so that no batch can be cut."""

    def __init__(self, address: Address, table: str) -> None:
        target = MarkedTarget(address, Marker(table), f"{address.location} {table}")
        super().__init__("jdbc", JDBC_TRAITS, target, f"Table {table} does not show to which batch a row belongs")

    def reader_path(self) -> str:
        raise PipelineError(
            "output-unreadable",
            "A stream cannot read a table: Spark has no streaming source for it",
            where=self.location,
            hint="read it as a static DataFrame: spark.read.jdbc(...)",
        )
