"""A rebuild continues after the last written batch with recomputed state.

A resume is the least change after which Spark continues exactly-once from existing state.
"""

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.diagnose.number_line import stops
from slackwater.diagnose.refusal import refusal
from slackwater.operations.goals.goal import RETENTION, ROW_ORDER, Flag, Goal
from slackwater.operations.plan.context import (
    PlanContext,
    Scope,
    check_cut,
    check_reproducible,
    check_since_start,
    require_code,
    state_bounds,
)
from slackwater.operations.plan.contributing import StateBounds, first_contributing
from slackwater.operations.plan.document import ALL, plan_command
from slackwater.operations.plan.plan import BEFORE_ALL, EARLIEST, LAST_WRITTEN
from slackwater.sources import kinds

OF_OPERATIONS = frozenset({"operation-unfinished", "operation-running"})
_NOT_OF_THE_CHECKPOINT = frozenset({"source-files-missing", "output-damaged", "sink-foreign"})


def target_batch(context: PlanContext) -> int:
    """The batch to continue after. Raises Refused if the sink does not hold it."""
    stream, written = context.snapshot.stream, context.written
    if context.target is not None:
        check_since_start(context, context.target)
    if context.target == BEFORE_ALL:
        return BEFORE_ALL
    check_shown(context, written)
    if context.target is not None and context.target > written:
        raise Refused(
            "target-unwritten",
            f"The sink of stream {stream.name} does not hold batch {context.target} yet",
            expected=f"a batch from 0 to {written}" if written >= 0 else "earliest, as nothing was written yet",
            found=str(context.target),
            hint=command("plan", "rebuild", stream.full_name, *stream.session),
        )
    wanted = written if context.target is None else context.target
    known = context.batches.newest_whole(wanted)
    if known is None and wanted <= 0:
        # Killed in its very first batch, before its range was recorded: there is nothing before it to continue after.
        return BEFORE_ALL
    if known is None:
        raise Refused(
            "history-empty",
            f"Neither the checkpoint nor the ledger has the range of any batch up to {wanted} of stream {stream.name}",
            hint="restore the ledger or the checkpoint from a backup; or give the stream a new name and a new output",
        )
    if context.target is not None and known != wanted:
        raise Refused(
            "target-unknown",
            f"The range of batch {wanted} is not recorded",
            expected=f"batch {known} or older",
            hint=command("plan", "rebuild", stream.full_name, "--at", f"batch:{known}", *stream.session),
        )
    return known


def check_shown(context: PlanContext, written: int) -> None:
    """A sink that shows nothing after a finished batch was moved or emptied."""
    snapshot, history = context.snapshot, context.history
    finished = max([snapshot.marks.committed, snapshot.recorded.shown, *history.commits, *history.written])
    if written < 0 <= finished:
        raise Refused(
            "sink-empty",
            f"The sink of stream {snapshot.stream.name} shows no written batch, but batches were finished",
            where=snapshot.output.location,
            expected=f"batch {finished} in the sink's own log",
            found="no entry",
            hint="restore the output if it was moved or deleted; or process everything again: "
            f"{command('plan', 'rebuild', snapshot.stream.full_name, '--at', 'earliest')}",
        )


def recomputed(context: PlanContext, scope: Scope) -> Scope:
    """The scope with the batches to replay, by the query if it was read.

    Raises Refused if a contributing batch is not recorded, or recomputed state would not be exact.
    """
    target = scope.target
    if target > BEFORE_ALL and context.profile is not None:
        # From batch 0 on nothing is replayed: the batches run again with their output.
        check_reproducible(context.profile, context.snapshot.stream, context.request, context.leader)
    state = state_bounds(context)
    first = first_contributing(context.batches, target, state, context.code) if target >= 0 else 0
    # A base before batch ``first`` needs an empty range of each source; batch 0 needs none.
    for kind, span in context.batches.spans(first, target) if 0 < first <= target else ():
        if span.start is not None and kind.empty_base(span.start) is None:
            raise Refused(
                "source-unsupported",
                f"A rebuild from batch {first} needs an empty range of source {span.source}, and none is known for its "
                f"kind ({kind.kind})",
                expected="a source of kind " + " or ".join(one.kind for one in kinds() if one.has_empty_base),
                found=(span.end or "")[:120],
                hint="a rebuild from batch 0 works for any source: "
                + plan_command(context.snapshot.stream.full_name, context.request, retention=ALL),
            )
    until = target if state.stateful and target >= 0 else None
    return scope._replace(first=first, state=state, state_until=until)


def scope_at(context: PlanContext, target: int) -> Scope:
    """Raises Refused for an impossible cut."""
    following = target + 1
    # With new ranges the earlier stage writes other files, which the recorded range does not name.
    pending = following if context.request.ranges == "recorded" and context.batches.is_whole(following) else None
    unread = StateBounds(context.snapshot.stateful, None, None)
    scope = Scope(target, 0, pending, unread, keeps_pending=context.written <= target)
    check_cut(context, scope)
    return scope


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

    def scope(self, context: PlanContext, /) -> Scope | None:
        require_code(context.snapshot.stream, self.name, context.snapshot.stream.pipeline_file)
        return scope_at(context, target_batch(context))


REBUILD = Rebuild()


def kept_scope(context: PlanContext, target: int) -> Scope | None:
    """The scope with kept state, if any. A query without state needs only recorded ranges."""
    snapshot, batches = context.snapshot, context.batches
    known = snapshot.stateful or snapshot.profile is not None
    if target < BEFORE_ALL or not known:
        return None
    if target >= 0 and not batches.is_whole(target):
        return None
    with_state = snapshot.stateful and target >= 0
    if with_state and (target not in context.states or batches.commit_text(target) is None):
        return None
    return Scope(
        target,
        target + 1,
        target + 1 if context.request.ranges == "recorded" and batches.is_whole(target + 1) else None,
        StateBounds(snapshot.stateful, None, None),
        copied=True,
        state_until=target if with_state else None,
    )


class Resume(Goal):
    name = "resume"
    summary = "Make the stream startable from its present state, with the smallest change."

    def scope(self, context: PlanContext, /) -> Scope | None:
        """``None`` if nothing has to be changed.

        A batch that the sink would skip unread is cut and run again if possible: its rows count for the watermark.
        Raises Refused or DataError if the next batch's state is not kept.
        """
        snapshot, written = context.snapshot, context.written
        urgent = [finding for finding in stops(snapshot) if finding.code not in OF_OPERATIONS]
        for finding in urgent:
            if finding.code in _NOT_OF_THE_CHECKPOINT:
                raise refusal(finding, snapshot.stream.name)
        if not urgent and not snapshot.misses_watermark:
            return None
        check_shown(context, written)
        again = skipped = None
        if snapshot.marks.written is not None and context.batches.is_whole(written):
            skipped = kept_scope(context, written - 1)
            again = skipped._replace(keeps_pending=False) if skipped and snapshot.output.can_cut else None
            # Spark's file sink skips the whole job (measured: the next batch fails with CANNOT_LOAD_STATE_STORE), so
            # the state after the batch must exist; for other sinks it runs without output.
            if skipped is not None and snapshot.stateful and written in context.states:
                skipped = skipped._replace(state_until=written)
            elif snapshot.stateful and not snapshot.output.skipped_are_read:
                skipped = None
        scope = kept_scope(context, written) or (again or skipped if snapshot.skips_unread else skipped or again)
        if not urgent and (scope is None or scope is skipped):
            # That is what Spark does by itself.
            return None
        if scope is None:
            newest = max(context.states, default=None)
            raise Refused(
                "state-not-kept",
                f"Stream {snapshot.stream.name} cannot continue after batch {written}: the checkpoint no "
                "longer has the required files",
                where=snapshot.generation.location,
                expected=f"state and commit of batch {written}",
                found="no state that can be loaded" if newest is None else f"state of batch {newest} as the newest",
                hint=f"recompute it: {command('plan', 'rebuild', snapshot.stream.full_name)}",
            )
        check_cut(context, scope)
        return scope

    def why_cut(self, held: str, _target: int, /) -> str | None:
        return f"the sink holds {held}, which is cut and runs again: its rows count for state and watermark"


RESUME = Resume()
