"""Derives a plan again before it is applied: what it was made from must not have moved, nor the plan been edited."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from slackwater.core.errors import UsageError
from slackwater.core.plan import Plan
from slackwater.core.profile import QueryProfile
from slackwater.core.records import StreamRecord
from slackwater.ledger.workspace import Workspace
from slackwater.operations.apply.preconditions import compare
from slackwater.operations.apply.replayer import PipelineReader, Replayer
from slackwater.operations.downstream import derive_all
from slackwater.operations.plan.words import plan_again
from slackwater.operations.planner import Planning, QueryReader

Opened = Callable[[Plan], AbstractContextManager[Callable[[], Replayer]]]
"""Opens the replayer of one plan when it is first asked for."""

_COMPARED = (
    "id", "goal", "stream", "pipeline_file", "request", "target", "facts", "preconditions", "actions", "undo",
)  # fmt: skip


def check_derived(workspace: Workspace, plan: Plan, code: PipelineReader, opened: Opened) -> None:
    """Raises Moved where facts changed since the plan was made, UsageError where the plan itself was edited.

    The caller holds the leases of the plan's streams and has updated the ledger from their logs since.
    """
    members = {one.stream: one for one in plan.members}

    def reader(stream: StreamRecord) -> QueryReader:
        member = members.get(stream.full_name)
        # A plan that was made without Spark is derived without it, too.
        if member is None or not member.request.query_read:
            return lambda: None
        return lambda: _profile(opened, member)

    planning = Planning(workspace, code, reader, plan.id, plan.made_at, own_lease=True, updated=set(members))
    facts = planning.facts(workspace.ledger.find_stream(plan.stream), plan.pipeline_file, plan.goal)
    derived = derive_all(planning, facts, plan.request)
    again = {one.stream: one for one in derived.members}
    for one in plan.members:
        if one.stream in again:
            _compare_facts(one, again[one.stream])
    if [one.stream for one in plan.members] != [one.stream for one in derived.members]:
        raise _edited(plan, "later stages", list(again), list(members))
    for one in plan.members:
        _compare(one, again[one.stream])


def _profile(opened: Opened, plan: Plan) -> QueryProfile:
    with opened(plan) as open_replayer:
        return open_replayer().profile()


def _compare_facts(plan: Plan, derived: Plan) -> None:
    facts: Mapping[object, str] = {(one.action, one.name): one.expected for one in derived.preconditions}
    known = [one for one in plan.preconditions if (one.action, one.name) in facts]
    compare(plan, known, lambda one: facts[one.action, one.name])


def _compare(plan: Plan, derived: Plan) -> None:
    for field in _COMPARED:
        if getattr(plan, field) != getattr(derived, field):
            raise _edited(plan, field, getattr(derived, field), getattr(plan, field))


def _edited(plan: Plan, what: str, expected: object, found: object) -> UsageError:
    return UsageError(
        "plan-damaged",
        f"The plan was changed or damaged: its {what} are not those of this request",
        where=f"stream {plan.stream}",
        expected=_short(expected),
        found=_short(found),
        hint=f"nothing was changed; plan again: {plan_again(plan)}",
    )


def _short(value: object) -> str:
    shown = str(value)
    return shown if len(shown) <= 200 else shown[:200] + "..."  # noqa: PLR2004 - enough to see what differs
