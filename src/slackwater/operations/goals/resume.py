"""A resume: the least change after which Spark continues exactly-once from existing state."""

from __future__ import annotations

from dataclasses import replace

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.diagnose.number_line import stops
from slackwater.diagnose.refusal import refusal
from slackwater.operations.goals.common.goal import Goal, WithQuery
from slackwater.operations.goals.rebuild import check_shown
from slackwater.operations.plan.basis import Basis, Scope
from slackwater.operations.plan.contributing import StateBounds
from slackwater.operations.plan.cut_check import check_cut
from slackwater.operations.plan.plan import BEFORE_ALL

_OF_OPERATIONS = frozenset({"operation-unfinished", "operation-running"})
_NOT_OF_THE_CHECKPOINT = frozenset({"source-files-missing", "output-damaged", "sink-foreign"})


def scope_of_resume(basis: Basis) -> Scope | None:
    """``None`` if nothing has to be changed.

    A batch that the sink would skip unread is cut and run again if possible: its rows count for the watermark. Raises
    Refused or DataError if the next batch's state is not kept.
    """
    snapshot = basis.snapshot
    urgent = [finding for finding in stops(snapshot) if finding.code not in _OF_OPERATIONS]
    for finding in urgent:
        if finding.code in _NOT_OF_THE_CHECKPOINT:
            raise refusal(finding, snapshot.stream.name)
    if not urgent and not snapshot.misses_watermark:
        return None
    check_shown(basis, basis.written)
    again, skipped = _run_again(basis), _before_what_is_skipped(basis)
    scope = kept_scope(basis, basis.written) or (again or skipped if snapshot.skips_unread else skipped or again)
    if not urgent and (scope is None or scope is skipped):
        # That is what Spark does by itself.
        return None
    if scope is None:
        raise _not_kept(basis)
    check_cut(basis, scope)
    return scope


def kept_scope(basis: Basis, target: int) -> Scope | None:
    """The scope with kept state, if any. A query without state needs only recorded ranges."""
    snapshot, batches = basis.snapshot, basis.batches
    known = snapshot.stateful or snapshot.profile is not None
    if target < BEFORE_ALL or not known:
        return None
    if target >= 0 and not batches.is_whole(target):
        return None
    with_state = snapshot.stateful and target >= 0
    if with_state and (target not in basis.states or batches.commit_text(target) is None):
        return None
    return Scope(
        target,
        target + 1,
        target + 1 if basis.request.ranges == "recorded" and batches.is_whole(target + 1) else None,
        StateBounds(snapshot.stateful, None, None),
        copied=True,
        state_until=target if with_state else None,
    )


def _run_again(basis: Basis) -> Scope | None:
    snapshot, written = basis.snapshot, basis.written
    if snapshot.marks.written is None or not snapshot.output.can_cut or not basis.batches.is_whole(written):
        return None
    scope = kept_scope(basis, written - 1)
    return scope and replace(scope, keeps_pending=False)


def _before_what_is_skipped(basis: Basis) -> Scope | None:
    """Spark's file sink skips the whole job (measured: the next batch fails with CANNOT_LOAD_STATE_STORE), so the state
    after the batch must exist; for other sinks it runs without output.
    """
    written, snapshot = basis.written, basis.snapshot
    if snapshot.marks.written is None or not basis.batches.is_whole(written):
        return None
    scope = kept_scope(basis, written - 1)
    if scope is None or not snapshot.stateful:
        return scope
    if written in basis.states:
        return replace(scope, state_until=written)
    return scope if snapshot.output.skipped_are_read else None


def _not_kept(basis: Basis) -> Refused:
    stream, written = basis.snapshot.stream, basis.written
    kept = max(basis.states, default=None)
    return Refused(
        "state-not-kept",
        f"Stream {stream.name} cannot continue after batch {written}: the checkpoint does not keep what that needs",
        where=basis.snapshot.generation.location,
        expected=f"state and commit of batch {written}",
        found="no state that can be loaded" if kept is None else f"state of batch {kept} as the newest",
        hint=f"recompute it: {command('plan', 'rebuild', stream.full_name)}",
    )


class Resume(Goal):
    name = "resume"
    summary = "Make the stream startable from the state it has; the least change that does."

    def scope(self, basis: Basis, _with_query: WithQuery, /) -> tuple[Basis, Scope | None]:
        return basis, scope_of_resume(basis)

    def why_cut(self, held: str, _target: int, /) -> str | None:
        return f"the sink holds {held}, which is cut and runs again: its rows count for state and watermark"


GOAL = Resume()
