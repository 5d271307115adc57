"""What the database that a batch function writes to shows: the newest batch and the owner, from the marker's row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from slackwater.errors import Refused
from slackwater.model.sink import Cut, Delivery, Owner
from slackwater.sinks.contract import Output
from slackwater.sinks.database.address import Address, address_in
from slackwater.sinks.database.marked import MarkedTarget
from slackwater.sinks.database.marker import Marker
from slackwater.sinks.foreach_batch.batch import marker_target
from slackwater.sinks.silent import SilentOutput, silent_traits
from slackwater.storage.protocols import WriteStore

KIND = "foreach_batch"
URL = "writes_to"
UNMARKED = replace(
    silent_traits(
        Delivery("at-least-once", "the function is called again for a batch that was interrupted"), one_writer=False
    ),
    combines=True,
)
MARKED = replace(
    silent_traits(
        Delivery("exactly-once", "the function writes in the transaction that marks the batch as written"),
        one_writer=True,
        skips=True,
    ),
    tells_written=True,
    reads_known_batches=True,
    combines=True,
)


def open_foreach_batch_output(identity: Mapping[str, str]) -> Output:
    """The output of a recorded identity of kind ``foreach_batch``."""
    name = identity.get("name", "")
    if URL not in identity:
        return SilentOutput(KIND, UNMARKED, None)
    return MarkedOutput(address_in(identity, URL), name)


class MarkedOutput(SilentOutput):
    """A function with a declared database, whose marker shows the newest batch, and nothing else."""

    def __init__(self, address: Address, name: str) -> None:
        self.location = f"{address.location} foreach_batch/{name}"
        super().__init__(KIND, MARKED, self.location)
        self.target = MarkedTarget(address, Marker(marker_target(name, None)), self.location)
        self._name = name

    def last_written(self) -> int | None:
        return self.target.last_written()

    def owner(self) -> Owner | None:
        return self.target.owner()

    def claim(self, owner: Owner) -> None:
        self.target.claim(owner)

    def cut_after(self, batch: int, _recorded: Mapping[int, str]) -> Cut:
        if batch < self.target.last_written():
            self._refuse_cut()
        return Cut(batch, ())

    def cut(self, cut: Cut, _recorded: Mapping[int, str], _backup: WriteStore) -> None:
        if cut.batches:
            self._refuse_cut()

    def restore(self, cut: Cut, _backup: WriteStore) -> None:
        if cut.batches:
            self._refuse_cut()

    def _refuse_cut(self) -> NoReturn:
        raise Refused(
            "sink-uncuttable",
            f"What the batch function {self._name} has written is known to the function only",
            hint="rebuild at the last written batch, which removes nothing",
        )
