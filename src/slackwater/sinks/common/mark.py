"""An output's mark: its stream and newest batch.

``epoch`` is the lease's fence number: a higher epoch refuses a run that was believed to have ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.core.errors import Refused
from slackwater.core.sink import Delivery, Owner, Traits, WriteContext

NONE_YET = -1
PUBLISHED_WITH_MARKER = "a batch is published in one transaction with its id in the marker table"


@dataclass(frozen=True, slots=True)
class Mark:
    """``batch_id`` is -1 before the first batch."""

    stream_id: str
    stream: str
    home: str
    epoch: int
    batch_id: int

    @property
    def owner(self) -> Owner | None:
        return Owner(self.stream_id, self.stream, self.home) if self.stream_id else None


def marked_traits(reason: str, *, cuts: bool = False, swaps: bool = False) -> Traits:
    """Exactly-once traits of a sink with a mark in each batch; ``reason`` explains them."""
    return Traits(
        Delivery("exactly-once", reason),
        reports_last_batch=True,
        skips_known_batches=True,
        cuts=cuts,
        swaps=swaps,
        reads_known_batches=True,
        combines=True,
    )


def owned(mark: Mark | None, where: str, *, stream: str, home: str | None, missing: str, hint: str) -> Refused:
    """The error for a different stream's output; ``missing`` describes an output without a mark."""
    return Refused(
        "sink-owned",
        f"Another stream writes to the output of stream {stream}: it would skip batches of this one",
        where=where,
        expected=f"stream {stream}" + (f" of home {home}" if home else ""),
        found=f"stream {mark.stream} of home {mark.home}" if mark else missing,
        hint=hint,
    )


def fenced(mark: Mark, where: str, context: WriteContext, remedy: str) -> Refused:
    """The error for a run that a later run has replaced; ``remedy`` sets the epoch back to 0."""
    return Refused(
        "sink-fenced",
        f"A later run of stream {context.stream} has taken over its output: this run may no longer write",
        where=where,
        expected=f"epoch {mark.epoch} or later",
        found=f"epoch {context.epoch}",
        hint=f"stop this run; if no other run exists and the ledger was lost, {remedy}",
    )
