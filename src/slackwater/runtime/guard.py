"""What must hold before a stream is started: the number line of checkpoint, sink and ledger must agree.

Starting anyway is how rows are lost: the file sink skips every batch whose id it has already, without a word.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.errors import Refused
from slackwater.model.marks import Marks
from slackwater.model.records import OperationRecord, StreamRecord


@dataclass(frozen=True, slots=True)
class BeforeStart:
    """What was found: the marks, the newest batch the ledger knows, any operation that was left unfinished."""

    stream: StreamRecord
    marks: Marks
    recorded: int
    unfinished: OperationRecord | None = None


def check_before_start(facts: BeforeStart) -> None:
    """Raises Refused where starting would lose, double or skip rows."""
    name, marks = facts.stream.name, facts.marks
    remedy = f"slackwater plan rebuild {name}"
    if facts.unfinished is not None:
        raise Refused(
            "operation-unfinished",
            f"Operation {facts.unfinished.id} on stream {name} was interrupted and must be carried to its end first",
            hint=f"slackwater apply {facts.unfinished.summary} --yes",
        )
    if marks.planned < 0 <= facts.recorded:
        raise Refused(
            "checkpoint-lost",
            f"The checkpoint of stream {name} holds no batch, yet batches up to {facts.recorded} were run; "
            "starting would count from 0 again and the sink would skip the new batches",
            expected=f"batch {facts.recorded} in offsets/",
            found="none",
            hint=remedy,
        )
    if marks.written is None:
        return
    if marks.written > marks.next_batch:
        raise Refused(
            "sink-ahead",
            f"The sink of stream {name} is ahead of its checkpoint: it would skip batches "
            f"{marks.next_batch}..{marks.written} without a word",
            expected=f"written at most {marks.next_batch}",
            found=f"written {marks.written}",
            hint=remedy if facts.recorded >= 0 else "give the stream an output directory of its own",
        )
    if marks.written < marks.next_batch - 1:
        raise Refused(
            "sink-behind",
            f"The sink of stream {name} lacks batches {marks.written + 1}..{marks.next_batch - 1} that the checkpoint "
            "has behind it; going on would leave their rows out",
            expected=f"written at least {marks.next_batch - 1}",
            found=f"written {marks.written}",
            hint=remedy,
        )


def check_same_sink(known: StreamRecord, now: StreamRecord) -> None:
    """Raises Refused where a stream's output was changed: a new directory would hold only what comes from now on."""
    if dict(known.sink) == dict(now.sink):
        return
    raise Refused(
        "sink-changed",
        f"Stream {now.full_name} has written to another sink so far",
        expected=_told(known),
        found=_told(now),
        hint="start from the directory the stream was always started from, or give the changed stream a new name",
    )


def _told(stream: StreamRecord) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(stream.sink.items()))
