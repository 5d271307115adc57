"""A rebuild: continue after the last written batch with recomputed state."""

from __future__ import annotations

from dataclasses import replace

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.operations.goals.common.goal import RETENTION, ROW_ORDER, Flag, Goal, WithQuery
from slackwater.operations.plan.basis import Basis, Scope, check_reproducible, check_since_start, state_bounds
from slackwater.operations.plan.contributing import StateBounds, first_contributing
from slackwater.operations.plan.cut_check import check_cut
from slackwater.operations.plan.plan import BEFORE_ALL, EARLIEST, LAST_WRITTEN
from slackwater.operations.plan.words import ALL, plan_command
from slackwater.sources import kinds


def target_batch(basis: Basis) -> int:
    """The batch to continue after. Raises Refused if the sink does not hold it."""
    stream, written = basis.snapshot.stream, basis.written
    if basis.target is not None:
        check_since_start(basis, basis.target)
    if basis.target == BEFORE_ALL:
        return BEFORE_ALL
    check_shown(basis, written)
    if basis.target is not None and basis.target > written:
        raise Refused(
            "target-unwritten",
            f"The sink of stream {stream.name} does not hold batch {basis.target} yet",
            expected=f"a batch from 0 to {written}" if written >= 0 else "earliest, as nothing was written yet",
            found=str(basis.target),
            hint=command("plan", "rebuild", stream.full_name, *stream.session),
        )
    wanted = written if basis.target is None else basis.target
    known = basis.batches.newest_whole(wanted)
    if known is None and wanted <= 0:
        # Killed in its very first batch, before its range was recorded: there is nothing before it to continue after.
        return BEFORE_ALL
    if known is None:
        raise Refused(
            "history-empty",
            f"Neither the checkpoint nor the ledger has the range of any batch up to {wanted} of stream {stream.name}",
            hint="restore the ledger or the checkpoint from a backup; or give the stream a new name and a new output",
        )
    if basis.target is not None and known != wanted:
        raise Refused(
            "target-unknown",
            f"The range of batch {wanted} is not recorded",
            expected=f"batch {known} or older",
            hint=command("plan", "rebuild", stream.full_name, "--at", f"batch:{known}", *stream.session),
        )
    return known


def check_shown(basis: Basis, written: int) -> None:
    """A sink that shows nothing after a finished batch was moved or emptied."""
    snapshot, history = basis.snapshot, basis.history
    finished = max([snapshot.marks.committed, snapshot.recorded.shown, *history.commits, *history.written])
    if written < 0 <= finished:
        raise Refused(
            "sink-empty",
            f"The sink of stream {snapshot.stream.name} shows no written batch, but batches were finished",
            where=snapshot.output.location,
            expected=f"batch {finished} in the sink's own log",
            found="no entry",
            hint="put the output back if it was moved or deleted; or process everything again: "
            f"{command('plan', 'rebuild', snapshot.stream.full_name, '--at', 'earliest')}",
        )


def scope_of_rebuild(basis: Basis) -> Scope:
    """Raises as ``recomputed``."""
    return recomputed(basis, target_batch(basis))


def recomputed(basis: Basis, target: int) -> Scope:
    """Raises Refused if a contributing batch is not recorded, or recomputed state would not be exact."""
    if target > BEFORE_ALL and basis.profile is not None:
        # From batch 0 on nothing is replayed: the batches run again with their output.
        check_reproducible(basis.profile, basis.snapshot.stream, basis.request, basis.leader)
    state = state_bounds(basis)
    until = target if state.stateful and target >= 0 else None
    scope = replace(scope_at(basis, target), state=state, state_until=until)
    first = first_contributing(basis.batches, target, scope.state, basis.code) if target >= 0 else 0
    _check_sources(basis, first, target)
    return replace(scope, first=first)


def scope_at(basis: Basis, target: int) -> Scope:
    """Raises Refused for an impossible cut."""
    following = target + 1
    # With new ranges the earlier stage writes other files, which the recorded range does not name.
    pending = following if basis.request.ranges == "recorded" and basis.batches.is_whole(following) else None
    unread = StateBounds(basis.snapshot.stateful, None, None)
    scope = Scope(target, 0, pending, unread, keeps_pending=basis.written <= target)
    check_cut(basis, scope)
    return scope


def _check_sources(basis: Basis, first: int, target: int) -> None:
    """A base before batch ``first`` needs an empty range of each source; batch 0 needs none."""
    if first == 0 or first > target:
        return
    stream = basis.snapshot.stream
    for kind, span in basis.batches.spans(first, target):
        if span.start is not None and kind.empty_base(span.start) is None:
            raise Refused(
                "source-unsupported",
                f"A rebuild from batch {first} needs an empty range of source {span.source}, and none is known for its "
                f"kind ({kind.kind})",
                expected="a source of kind " + " or ".join(one.kind for one in kinds() if one.has_empty_base),
                found=(span.end or "")[:120],
                hint="a rebuild from batch 0 works for any source: "
                + plan_command(stream.full_name, basis.request, retention=ALL),
            )


class Rebuild(Goal):
    name = "rebuild"
    summary = "Continue after the last written batch, with state recomputed."
    flags = (
        Flag(
            "--at",
            "at",
            f"{LAST_WRITTEN} (default), batch:N for an older written batch, or {EARLIEST} to process everything again",
            kind="target",
            metavar="POSITION",
            default=LAST_WRITTEN,
        ),
        RETENTION,
        ROW_ORDER,
    )
    runs_spark = True

    def scope(self, basis: Basis, with_query: WithQuery, /) -> tuple[Basis, Scope | None]:
        basis = with_query(basis)
        return basis, scope_of_rebuild(basis)

    def scope_without_query(self, basis: Basis, /) -> Scope | None:
        return scope_at(basis, target_batch(basis))


GOAL = Rebuild()
