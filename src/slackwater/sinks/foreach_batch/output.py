"""What the database that a batch function writes to shows: the newest batch and the owner, from the marker's row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from slackwater.model.sink import Delivery
from slackwater.sinks.contract import Output
from slackwater.sinks.database.address import Address, address_in
from slackwater.sinks.database.marked import MarkedTarget
from slackwater.sinks.database.marker import Marker
from slackwater.sinks.foreach_batch.batch import marker_target
from slackwater.sinks.silent import SilentOutput, silent_traits
from slackwater.sinks.uncut import UncutOutput

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


class MarkedOutput(UncutOutput[MarkedTarget]):
    """A function with a declared database, whose marker shows the newest batch, and nothing else."""

    def __init__(self, address: Address, name: str) -> None:
        location = f"{address.location} foreach_batch/{name}"
        target = MarkedTarget(address, Marker(marker_target(name, None)), location)
        super().__init__(
            KIND, MARKED, target, f"What the batch function {name} has written is known to the function only"
        )
