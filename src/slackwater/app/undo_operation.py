"""Use case: undo an operation, as far as it came, by the inverses in its plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from slackwater.app.acting import Consent, acting
from slackwater.app.apply_plan import ApplyDisplay, operation_as_recorded, operation_for_undo
from slackwater.app.workspace import Workspace
from slackwater.apply.actions.switch_generation import check_unused
from slackwater.apply.executor import undo
from slackwater.apply.journal import PRUNED
from slackwater.apply.operation import PLAN_FILE
from slackwater.errors import DataError, NotFound, Refused, UsageError
from slackwater.lease.keeper import LeaseKeeper
from slackwater.model.plan import Plan
from slackwater.model.records import UNDOING, OperationRecord
from slackwater.plan.document import IDENTIFIER, parse
from slackwater.plan.words import at_batch
from slackwater.storage.local import LocalStore

ENDED_WITHOUT_EFFECT = frozenset({"undone", "refused"})
"""Statuses of operations that have nothing to undo."""


@dataclass(frozen=True, slots=True)
class Undone:
    """The outcome of an undo. ``repeated``: there was nothing to undo."""

    plan: Plan
    outcome: Literal["undone"] = "undone"
    repeated: bool = False


def find_operation(workspace: Workspace, name: str) -> OperationRecord:
    """The operation with this id. Raises NotFound (``operation-unknown``)."""
    operations = [one for stream in workspace.ledger.streams() for one in workspace.ledger.operations(stream.full_name)]
    for operation in operations:
        if operation.id == name:
            return operation
    raise NotFound(
        "operation-unknown",
        f"The ledger has no operation {name}",
        expected=", ".join(one.id for one in operations[-5:]) or "no operation was applied in this home",
        found=name,
        hint="slackwater ledger --operations lists them",
    )


def plan_of_operation(workspace: Workspace, operation: OperationRecord) -> Plan:
    """The plan that an operation was started with. Raises NotFound, or UsageError where it was changed since."""
    if IDENTIFIER.fullmatch(operation.id) is None:
        raise DataError(
            "ledger-unreadable",
            "The ledger lists an operation whose id Slackwater did not give",
            expected="an id such as 20260105T093000-1a2b3c",
            found=operation.id[:60],
            hint="restore the ledger from a backup; nothing was changed",
        )
    pipeline, name = operation.stream.split("/", 1)
    folder = workspace.home.operation(pipeline, name, operation.id)
    try:
        content = LocalStore(folder).read(PLAN_FILE)
    except FileNotFoundError as error:
        raise NotFound(
            "operation-folder-missing",
            f"The folder of operation {operation.id} has no plan",
            where=str(folder / PLAN_FILE),
            hint="restore the folder from a backup; nothing was changed",
        ) from error
    plan = parse(content.decode("utf-8", "replace"), Path(folder / PLAN_FILE))
    if (plan.id, plan.stream) != (operation.id, operation.stream):
        raise UsageError(
            "plan-damaged",
            "The plan in the folder of the operation belongs to another operation",
            where=str(folder / PLAN_FILE),
            expected=f"{operation.id} on {operation.stream}",
            found=f"{plan.id} on {plan.stream}",
            hint="restore the folder from a backup; nothing was changed",
        )
    return plan


def undo_operation(
    workspace: Workspace, operation: OperationRecord, plan: Plan, display: ApplyDisplay, consent: Consent = None
) -> Undone:
    """Take the operation back. Raises Refused where the stream has run since, or what the undo needs was pruned."""
    acting(workspace, consent, display.say)
    if operation.status in ENDED_WITHOUT_EFFECT:
        return Undone(plan, repeated=True)
    _check_kept(operation, plan)
    stream = workspace.ledger.find_stream(operation.stream)
    with LeaseKeeper([stream], workspace.home, workspace.ledger, f"undo {plan.goal}", display.say) as leases:
        taken_back = operation_for_undo(workspace, plan, stream, display, leases.fence(stream.full_name))
        check_unused(taken_back)
        # Open until it has ended: a run between two steps of an undo that was killed would find neither state.
        file = str(taken_back.folder / PLAN_FILE)
        workspace.ledger.begin_operation(replace(operation, status=UNDOING, ended_ms=None, summary=file))
        undo(taken_back)
    return Undone(plan)


def check_undoable(workspace: Workspace, operation: OperationRecord, display: ApplyDisplay) -> None:
    """Raises the error that an undo of the operation would end with, as far as it can be seen; nothing is written."""
    plan = plan_of_operation(workspace, operation)
    _check_kept(operation, plan)
    stream = workspace.ledger.find_stream(operation.stream)
    check_unused(operation_as_recorded(workspace, plan, stream, display))


def _check_kept(operation: OperationRecord, plan: Plan) -> None:
    if operation.status == PRUNED:
        raise Refused(
            "undo-pruned",
            f"Operation {operation.id} can no longer be undone: the generation to switch back to was deleted",
            where=f"stream {operation.stream}",
            hint="to go back to an older batch: "
            f"slackwater plan rebuild {operation.stream} --at {at_batch(plan.facts.target)}",
        )
