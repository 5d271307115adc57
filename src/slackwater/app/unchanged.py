"""Derives a plan again before it is applied: what it was made from must not have moved, nor the plan been edited."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.app.deriving import Asked, QueryReader
from slackwater.app.downstream import derive_all
from slackwater.app.one_replayer import Opened
from slackwater.app.workspace import Workspace
from slackwater.apply.preconditions import compare
from slackwater.errors import UsageError
from slackwater.model.plan import Plan
from slackwater.model.profile import QueryProfile
from slackwater.model.records import StreamRecord
from slackwater.plan.words import plan_again

_COMPARED = (
    "id", "goal", "stream", "pipeline_file", "request", "target", "facts", "preconditions", "actions", "undo",
)  # fmt: skip


def check_derived(workspace: Workspace, plan: Plan, opened: Opened) -> None:
    """Raises Moved where facts changed since the plan was made, UsageError where the plan itself was edited."""
    members = {one.stream: one for one in plan.members}

    def reader(stream: StreamRecord) -> QueryReader:
        member = members.get(stream.full_name)
        # A plan that was made without Spark is derived without it, too.
        if member is None or not member.request.query_read:
            return lambda: None
        return lambda: _profile(opened, member)

    derived = derive_all(
        workspace,
        workspace.ledger.find_stream(plan.stream),
        Asked(plan.goal, plan.request, plan.pipeline_file),
        reader,
        identity=(plan.id, plan.made_at),
        own_lease=True,
    )
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
