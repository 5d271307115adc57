"""The end of kept batches, or the start or end of a range, as in Kafka's tool."""

from typing import Literal, NamedTuple

TargetKind = Literal["last-written", "batch", "earliest", "latest", "time", "by", "shift", "offsets"]


class Target(NamedTuple):
    """A recorded batch (``last-written``, ``batch``) or a place in the sources.

    ``last-written``: after the sink's newest batch. ``batch``: after the recorded batch ``number``. ``earliest``:
    before everything that the source still has. ``latest``: after everything that the source has now. ``time``: before
    the first record or file of ``number`` or later, in epoch milliseconds. ``by``: ``number`` milliseconds before now.
    ``shift``: the current position moved by ``number``, back if negative. ``offsets``: offsets in the JSON ``file``,
    named as typed; only the caller opens it.
    """

    kind: TargetKind
    number: int = 0
    file: str = ""
