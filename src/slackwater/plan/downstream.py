"""What a later stage must do when an earlier one writes again what it has read."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.model.finding import Goal
from slackwater.model.history import History
from slackwater.model.plan import OutputTreatment, Request
from slackwater.plan.basis import BEFORE_ALL
from slackwater.plan.batch_history import BatchHistory, offsets_by_source
from slackwater.plan.words import BATCH, EARLIEST, at_batch


def first_batch(history: History, read: Mapping[str, int]) -> int:
    """The first batch that has read one of some entries of the sources' own logs; the next one where none has."""
    batches = BatchHistory(history)
    for batch in batches.batches:
        ends = offsets_by_source(batches.offset(batch))
        for source, entry in read.items():
            last = batches.kind(source, ends.get(source)).cut_entry(ends.get(source))
            if last is not None and last >= entry:
                return batch
    return max(batches.batches, default=BEFORE_ALL) + 1


def request_from(batch: int, written: int, output: OutputTreatment) -> tuple[Goal, Request]:
    """The goal and request of a stage that processes its batches from ``batch`` on again, with what its sources have.

    Of what its sink does not hold (``written`` is the newest that it does) nothing has to be taken back: a rebuild.
    """
    if batch <= written:
        return "replay", _request(f"{BATCH}{batch}" if batch > 0 else EARLIEST, output)
    return "rebuild", _request(at_batch(batch - 1), "cut")


def _request(target: str, output: OutputTreatment) -> Request:
    return Request.at(target, output=output, downstream=True, ranges="new")
