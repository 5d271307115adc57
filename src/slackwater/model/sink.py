"""Values about a sink's output: what a cut takes out, who owns it, and what it can do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from slackwater.model.strict import STRICT

Guarantee = Literal["exactly-once", "at-least-once", "none"]
"""``none``: the sink keeps no rows, or not over a restart."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a sink guarantees across crashes and restarts, and why, in one sentence."""

    guarantee: Guarantee
    reason: str


@dataclass(frozen=True, slots=True)
class Traits:
    """What a sink can do; plans depend on these and never on its kind.

    ``tells_written``: ``last_written()`` needs neither the checkpoint nor a JVM. ``skips_known_batches``: a batch whose
    id the output already has is skipped. ``cuts``: whole batches can be removed and restored. ``swaps``: new output can
    be built aside and put in place in one step. ``reads_known_batches``: a batch that is skipped is run all the same,
    without output, so that Spark's watermark is that of an uninterrupted run. ``one_writer``: a second stream may not
    write to it. ``continuous``: Spark can write it without micro-batches (programming guide, section "Continuous
    Processing"). ``combines``: it can be one of several outputs that a batch is written into.
    """

    delivery: Delivery
    tells_written: bool
    skips_known_batches: bool
    cuts: bool
    swaps: bool
    one_writer: bool = True
    reads_known_batches: bool = False
    continuous: bool = False
    combines: bool = False


def weakest(deliveries: Iterable[Delivery]) -> Delivery:
    """The one that promises least; of several, the first."""
    return max(deliveries, key=lambda delivery: get_args(Guarantee).index(delivery.guarantee))


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One sink, or one way to use it: ``call`` is how it is written, ``name`` the function of ``slackwater.sinks``."""

    name: str
    call: str
    traits: Traits
    output_modes: tuple[str, ...] = ("append", "update", "complete")


@dataclass(frozen=True, slots=True)
class Owner:
    """The stream that writes to an output; kept beside its manifest. ``home`` is the home of ``stream``."""

    stream_id: str
    stream: str
    home: str


@dataclass(frozen=True, slots=True)
class WriteContext:
    """The run that writes to a sink. ``epoch`` is the fence number of its lease: a later run has a higher one.

    ``planned`` is the newest batch that was planned before this run started: batches up to it may be run again.
    """

    stream_id: str
    stream: str
    epoch: int
    output_mode: str
    planned: int = -1
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """What cutting an output back to batch ``after`` takes out of it.

    ``files`` are POSIX paths relative to the output, ``bytes`` their total size as the output records it; ``rows`` is
    the number of rows, where the output counts these. ``version`` names the state of the output that the cut was worked
    out from, where the output has versions. Of several outputs ``members`` has what each of them loses, in their order,
    and the cut itself only the batches.
    """

    __pydantic_config__: ClassVar = STRICT

    after: int
    batches: tuple[int, ...]
    files: tuple[str, ...] = ()
    bytes: int = 0
    rows: int | None = None
    version: str | None = None
    members: tuple[Cut, ...] = ()


@dataclass(frozen=True, slots=True)
class SideOutput:
    """A directory that an operation fills in place of the output of a stream, in a format of the file sink.

    ``path`` is absolute, or a URI.
    """

    __pydantic_config__: ClassVar = STRICT

    format: str
    path: str


@dataclass(frozen=True, slots=True)
class Swap:
    """A staged output that is to replace the real one: that of ``operation``, both of the stream ``stream_id``.

    ``replaced`` is the newest batch of the real output; a swap is refused if it has another one by then. Of several
    outputs ``members`` has the swap of each, in their order.
    """

    __pydantic_config__: ClassVar = STRICT

    operation: str
    stream_id: str
    replaced: int
    members: tuple[Swap, ...] = ()
