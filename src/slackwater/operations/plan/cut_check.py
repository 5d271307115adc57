from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import output_command
from slackwater.core.errors import Refused
from slackwater.core.sink import newest_batch
from slackwater.core.snapshot import MemberSeen
from slackwater.core.units import batch_range
from slackwater.operations.goals.common.goal import goal_named
from slackwater.operations.plan.basis import Basis, Scope, is_cut


def check_cut(basis: Basis, scope: Scope) -> None:
    """Raises Refused if an output cannot remove its batches.

    A sink that shows no batches would get them twice if ranges are not recorded, unless it skips ids.
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
        f"The stream would {_start_of(target)}, but {reason}",
        where=output.location,
        expected=f"batch {written}, the newest that {sink} holds",
        found=newest_batch(target),
        hint="\n".join(_instead_of_cut(basis)),
    )


def _instead_of_cut(basis: Basis) -> Iterator[str]:
    snapshot = basis.snapshot
    if not snapshot.stream.has_output:
        recorded = output_command(snapshot.stream, snapshot.generation.location, snapshot.code_file)
        yield f"record where the query writes: {recorded}"
    yield goal_named(basis.goal).without_cut(basis)


def _start_of(target: int) -> str:
    return f"continue after batch {target}" if target >= 0 else "start again at batch 0"
