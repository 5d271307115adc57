"""What the database that a batch function writes to shows: the newest batch and the owner, from the marker's row."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.errors import PipelineError, Refused, SinkUnreadable
from slackwater.model.damage import Damage
from slackwater.model.sink import Cut, Delivery, Owner, Traits
from slackwater.sinks.contract import Output, SinkLog
from slackwater.sinks.database.address import Address, address_in
from slackwater.sinks.database.marked import MarkedTarget
from slackwater.sinks.database.marker import Marker
from slackwater.sinks.foreach_batch.batch import marker_target
from slackwater.storage.protocols import WriteStore

URL = "writes_to"
MARKED = Traits(
    Delivery("exactly-once", "the function writes in the transaction that marks the batch as written"),
    tells_written=True,
    skips_known_batches=True,
    cuts=False,
    swaps=False,
)
UNMARKED = Traits(
    Delivery("at-least-once", "the function is called again for a batch that was interrupted"),
    tells_written=False,
    skips_known_batches=False,
    cuts=False,
    swaps=False,
    one_writer=False,
)


def open_foreach_batch_output(identity: Mapping[str, str]) -> Output:
    """The output of a recorded identity of kind ``foreach_batch``."""
    name = identity.get("name", "")
    if URL not in identity:
        return UnmarkedOutput(name)
    return MarkedOutput(address_in(identity, URL), name)


class _FunctionOutput:
    """What is the same with and without a declared database: nothing of the output is known."""

    def __init__(self, name: str) -> None:
        self._name = name

    def log(self) -> SinkLog | None:
        return None

    def name_of(self, _uri: str) -> str | None:
        return None

    def restore(self, cut: Cut, _backup: WriteStore) -> None:
        if cut.batches:
            raise self._refusal()

    def reader_path(self) -> str:
        raise PipelineError(
            "output-unreadable", "A stream cannot read what a batch function writes", where=f"function {self._name}"
        )

    def _refusal(self) -> Refused:
        return Refused(
            "sink-uncuttable",
            f"What the batch function {self._name} has written is known to the function only",
            hint="rebuild at the last written batch, which removes nothing",
        )


class UnmarkedOutput(_FunctionOutput):
    """A function that declares no database: what it wrote is unknown."""

    location = None
    traits = UNMARKED

    def last_written(self) -> int | None:
        raise SinkUnreadable(
            "sink-silent",
            f"The batch function {self._name} does not show which batch was written last",
            hint="sinks.foreach_batch(..., writes_to=URL) and batch.transaction() make it known",
        )

    def owner(self) -> Owner | None:
        return None

    def claim(self, owner: Owner) -> None:
        """Nothing: there is no place for the mark."""

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        return ()

    def cut_after(self, _batch: int, _recorded: Mapping[int, str]) -> Cut:
        raise self._refusal()

    def cut(self, _cut: Cut, _recorded: Mapping[int, str], _backup: WriteStore) -> None:
        raise self._refusal()


class MarkedOutput(_FunctionOutput):
    """A function with a declared database, whose marker shows the newest batch."""

    traits = MARKED

    def __init__(self, address: Address, name: str) -> None:
        super().__init__(name)
        self.location = f"{address.location} foreach_batch/{name}"
        self.target = MarkedTarget(address, Marker(marker_target(name, None)), self.location)

    def last_written(self) -> int | None:
        return self.target.last_written()

    def owner(self) -> Owner | None:
        return self.target.owner()

    def claim(self, owner: Owner) -> None:
        self.target.claim(owner)

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        return ()

    def cut_after(self, batch: int, _recorded: Mapping[int, str]) -> Cut:
        written = self.target.last_written()
        if batch < written:
            raise self._refusal()
        return Cut(batch, ())

    def cut(self, cut: Cut, _recorded: Mapping[int, str], _backup: WriteStore) -> None:
        if cut.batches:
            raise self._refusal()
