"""What a table of any database holds: its newest batch and its owner, both from the marker's row."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.errors import PipelineError, Refused, SinkUnreadable
from slackwater.model.damage import Damage
from slackwater.model.sink import Cut, Delivery, Owner, Traits
from slackwater.sinks.contract import SinkLog
from slackwater.sinks.database.address import Address, address_in
from slackwater.sinks.database.marked import MarkedTarget
from slackwater.sinks.database.marker import Marker
from slackwater.storage.protocols import WriteStore

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


class JdbcOutput:
    """One table. It has no batch ids, so that no batch can be cut."""

    traits = JDBC_TRAITS

    def __init__(self, address: Address, table: str) -> None:
        self._table = table
        self.location = f"{address.location} {table}"
        self.target = MarkedTarget(address, Marker(table), self.location)

    def last_written(self) -> int:
        return self.target.last_written()

    def owner(self) -> Owner | None:
        return self.target.owner()

    def claim(self, owner: Owner) -> None:
        self.target.claim(owner)

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        return ()

    def log(self) -> SinkLog | None:
        return None

    def name_of(self, _uri: str) -> str | None:
        return None

    def cut_after(self, batch: int, _recorded: Mapping[int, str]) -> Cut:
        if batch < self.last_written():
            raise self._refusal()
        return Cut(batch, ())

    def cut(self, cut: Cut, _recorded: Mapping[int, str], _backup: WriteStore) -> None:
        if cut.batches:
            raise self._refusal()

    def restore(self, cut: Cut, _backup: WriteStore) -> None:
        if cut.batches:
            raise self._refusal()

    def reader_path(self) -> str:
        raise PipelineError(
            "output-unreadable",
            "A stream cannot read a table: Spark has no streaming source for it",
            where=self.location,
            hint="read it as a static DataFrame: spark.read.jdbc(...)",
        )

    def _refusal(self) -> Refused:
        return Refused(
            "sink-uncuttable",
            f"Table {self._table} does not show to which batch a row belongs",
            where=self.location,
            hint="rebuild at the last written batch, which removes nothing",
        )
