"""What the plan of an operation on checkpoint and sink is derived from, whatever its goal."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

from slackwater.diagnose.words import batch_range
from slackwater.errors import Refused
from slackwater.model.actions import SourceStart
from slackwater.model.finding import Goal
from slackwater.model.history import History
from slackwater.model.plan import Request
from slackwater.model.profile import QueryProfile
from slackwater.model.sink import SideOutput
from slackwater.model.snapshot import MemberSeen, Snapshot
from slackwater.plan.batch_history import BatchHistory, offsets_by_source
from slackwater.plan.contributing import Code, StateBounds
from slackwater.sources.contract import SourceRange

BEFORE_ALL = -1
"""The target where a stream is processed from its beginning: nothing stays written, batch 0 is the next one."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What an operation is planned from.

    ``target`` is the batch to continue after that was asked for, ``None`` for the last written one. ``query`` is the
    profile of the present code, ``None`` where it was not needed or could not be read; ``number`` is the next
    generation's; ``environment`` names the variables that the pipeline file reads; ``states`` are the batches whose
    state the checkpoint in use can load; ``executed`` is what batches have read, where the goal is a backfill.
    ``readers`` are the streams that have read what the operation changes; ``adopted`` is as in ``Facts``; ``side`` is
    where the rows go in place of the stream's output, ``None`` for the output.
    """

    goal: Goal
    snapshot: Snapshot
    history: History
    request: Request
    target: int | None
    code: Code
    number: int
    query: QueryProfile | None = None
    environment: tuple[str, ...] = ()
    states: frozenset[int] = frozenset()
    readers: tuple[str, ...] = ()
    executed: tuple[SourceRange, ...] = ()
    adopted: str | None = None
    side: SideOutput | None = None

    @property
    def batches(self) -> BatchHistory:
        """The history, decoded."""
        return BatchHistory(self.history)

    @property
    def written(self) -> int:
        """The newest batch the sink shows, -1 for none; of a sink that cannot show it, the newest committed one."""
        return self.snapshot.written_or_committed


@dataclass(frozen=True, slots=True)
class Scope:
    """Which batches an operation is about: ``target`` is the one to continue after.

    ``first`` to ``target`` are replayed without output, none where ``first`` is the later one; ``pending`` stays
    planned behind them, with its recorded range. ``copied``: state and ranges are those of the checkpoint in use, so
    that Spark is not needed. ``keeps_pending``: outputs that hold ``pending`` keep it, and skip it when it runs again.
    ``state_until`` is the newest batch whose state the new checkpoint has, ``None`` for none. ``starts`` are positions
    of the sources in place of the recorded end of ``target``.
    """

    target: int
    first: int
    pending: int | None
    state: StateBounds
    copied: bool = False
    state_until: int | None = None
    starts: tuple[SourceStart, ...] | None = None
    keeps_pending: bool = True

    @property
    def planned(self) -> int:
        """The newest batch in ``offsets/`` of the new checkpoint."""
        return self.target if self.pending is None else self.pending


def is_cut(basis: Basis, scope: Scope) -> bool:
    """Whether the sink holds batches that it must not hold after the operation.

    Where batch ``pending`` is kept, its range stays the same, so that outputs that have it need not be cut.
    """
    shown = basis.snapshot.shown
    return bool(shown) and max(shown) > (scope.planned if scope.keeps_pending else scope.target)


def check_since_start(basis: Basis, target: int) -> None:
    """Raises Refused for a batch before a reset or a backfill: what it read is not what the batches before it did."""
    begins, stream = basis.history.begins, basis.snapshot.stream
    if target < begins - 1:
        raise Refused(
            "target-unknown",
            f"Batch {target + 1} is of the time before the last reset or backfill of stream {stream.name}, of which "
            "nothing counts: another range was read between that time and this one",
            where=f"stream {stream.full_name}",
            expected=f"to continue after batch {begins - 1} or a newer one",
            found=f"to continue after batch {target}" if target >= 0 else "the beginning",
            hint=f"process everything again: slackwater plan reset {stream.full_name} --from earliest",
        )


def written_text(snapshot: Snapshot) -> str:
    """The newest batch of each output, as a precondition compares it."""
    return ", ".join(str(one.written) for one in snapshot.outputs)


def check_cut(basis: Basis, scope: Scope) -> None:
    """Raises Refused where an output holds batches after the target and cannot remove what they wrote.

    A sink that does not show what it holds gets them a second time where their ranges are not recorded, but only if it
    does not skip them. Nothing is checked where nothing is to be removed.
    """
    if basis.request.output in {"keep", "swap"}:
        return
    cutting, committed, target = is_cut(basis, scope), basis.snapshot.known_committed, scope.target
    for output in basis.snapshot.outputs:
        if output.written is not None:
            if cutting and output.written > target and not output.can_cut:
                raise _uncuttable(basis, output, target, output.written)
        elif target < committed and (basis.target is not None or output.batches_skipped):
            raise _uncuttable(basis, output, target, committed)


def _uncuttable(basis: Basis, output: MemberSeen, target: int, written: int) -> Refused:
    snapshot, stream = basis.snapshot, basis.snapshot.stream
    later, mode = batch_range(target + 1, written), stream.output_mode
    sink = f"its output {output.name}" if snapshot.output.members else "the sink"
    reason = (
        f"{sink} cannot remove what {later} wrote"
        if mode == "append"
        else f"in {mode} mode {later} replaced rows of earlier batches, which the sink does not keep"
    )
    return Refused(
        "sink-uncuttable",
        f"The stream would continue after batch {target}, but {reason}",
        where=output.location,
        expected=f"batch {written}, the newest that {sink} holds",
        found=f"batch {target}",
        hint=_without_cut(basis),
    )


def _without_cut(basis: Basis) -> str:
    stream, request = basis.snapshot.stream.full_name, basis.request
    if basis.goal == "reset":
        return f"keep what the output has: slackwater plan reset {stream} --from {request.target} --output keep"
    return f"rebuild at the last written batch, which removes nothing: slackwater plan rebuild {stream}"


def batches_used(first: int, target: int, pending: int | None) -> range:
    """The batches whose recorded ranges the new checkpoint copies."""
    return range(max(min(first, target) - 1, 0), (target if pending is None else pending) + 1)


def ends_after(batches: BatchHistory, target: int) -> dict[str, int]:
    """For each source the last entry of its own log that a generation based at ``target`` inherits (-1: none).

    Sources that inherit all entries are left out.
    """
    if target < 0:
        return dict.fromkeys(batches.history.sources, -1)
    ends = offsets_by_source(batches.offset(target))
    cuts = {source: batches.kind(source, text).cut_entry(text) for source, text in ends.items()}
    return {source: entry for source, entry in cuts.items() if entry is not None}


def query_id(basis: Basis, target: int) -> str:
    """The id of the query, which stays. Raises Refused (``query-id-unknown``)."""
    recorded, generation = basis.history.metadata, basis.snapshot.generation
    if recorded is not None:
        return str(json.loads(recorded)["id"])
    if generation.query_id is not None:
        return generation.query_id
    if target == BEFORE_ALL:
        # Killed before Spark had written its metadata: no id was ever used. The same each time the plan is derived.
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{basis.snapshot.stream.id}/{basis.number}"))
    raise Refused(
        "query-id-unknown",
        f"The query id of stream {basis.snapshot.stream.name} is not recorded",
        where=generation.location,
        hint="restore the file metadata of the checkpoint from a backup",
    )
