"""Use case: undo an operation, as far as it came, by the inverses in its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from slackwater.app.acting import Consent, acting
from slackwater.app.adopted import check_stopped, modified_ms
from slackwater.app.apply_plan import ApplyDisplay
from slackwater.app.deriving import reconcile
from slackwater.app.operations import operations_of
from slackwater.app.workspace import Workspace
from slackwater.apply.actions.run_aside import check_unread
from slackwater.apply.actions.run_backfill import check_removable
from slackwater.apply.actions.switch_generation import check_unused
from slackwater.apply.executor import undo
from slackwater.apply.journal import JOURNAL, PRUNED
from slackwater.apply.operation import PLAN_FILE, Operation
from slackwater.errors import DataError, NotFound, Refused, UsageError
from slackwater.lease.keeper import LeaseKeeper
from slackwater.model.plan import Plan
from slackwater.model.records import UNDOING, OperationRecord, leader_id
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
    """The operation with this id, or that with a part of this id. Raises NotFound (``operation-unknown``)."""
    operations = [one for stream in workspace.ledger.streams() for one in workspace.ledger.operations(stream.full_name)]
    for operation in operations:
        if operation.id == leader_id(name):
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
    workspace: Workspace,
    operation: OperationRecord,
    plan: Plan,
    display: ApplyDisplay,
    consent: Consent = None,
    *,
    stopped: bool = False,
) -> Undone:
    """Take the operation back. Raises Refused where a stream has run since, or what the undo needs was pruned.

    ``stopped``: the user declares that a query that Slackwater does not run was stopped.
    """
    acting(workspace, consent, display.say)
    records = _records(workspace, operation, plan)
    if all(one.status in ENDED_WITHOUT_EFFECT for one in records):
        return Undone(plan, repeated=True)
    _check_kept(records, plan)
    streams = [workspace.ledger.find_stream(one.stream) for one in plan.members]
    with LeaseKeeper(streams, workspace.home, workspace.ledger, f"undo {plan.goal}", display.say) as leases:
        for stream in streams:
            reconcile(workspace, stream)
        left = _left(operations_of(workspace, plan, display, leases.fence), records)
        for one, _ in left:
            _check(one)
            # What the operation itself has written is older than the last line of its journal.
            since_ms = modified_ms(one.folder / JOURNAL)
            check_stopped(workspace, one.stream, since_ms=since_ms, stopped=stopped)
        for one, record in left:
            # Open until it has ended: a run between two steps of an undo that was killed would find neither state.
            file = str(one.whole / PLAN_FILE)
            workspace.ledger.begin_operation(replace(record, status=UNDOING, ended_ms=None, summary=file))
        for one, _ in reversed(left):
            undo(one)
    return Undone(plan)


def check_undoable(workspace: Workspace, operation: OperationRecord, display: ApplyDisplay) -> None:
    """Raises the error that an undo of the operation would end with, as far as it can be seen; nothing is written."""
    plan = plan_of_operation(workspace, operation)
    records = _records(workspace, operation, plan)
    _check_kept(records, plan)
    for one, _ in _left(operations_of(workspace, plan, display, lambda _: 0), records):
        _check(one)


def _check(operation: Operation) -> None:
    check_unused(operation)
    check_removable(operation)
    check_unread(operation)


def _records(workspace: Workspace, operation: OperationRecord, plan: Plan) -> list[OperationRecord]:
    """The record of each stream's operation that was recorded; killed before, it has changed nothing."""
    ledger, ids = workspace.ledger, [one.id for one in plan.downstream]
    later = [one for stage in plan.downstream for one in ledger.operations(stage.stream) if one.id in ids]
    return [operation, *later]


def _left(
    operations: Sequence[Operation], records: Sequence[OperationRecord]
) -> list[tuple[Operation, OperationRecord]]:
    """Those that have an effect, in the order in which they were applied."""
    open_ones = {one.id: one for one in records if one.status not in ENDED_WITHOUT_EFFECT}
    return [(one, open_ones[one.plan.id]) for one in operations if one.plan.id in open_ones]


def _check_kept(records: Sequence[OperationRecord], plan: Plan) -> None:
    for one in records:
        if one.status == PRUNED:
            raise Refused(
                "undo-pruned",
                f"Operation {records[0].id} can no longer be undone: the generation to switch back to was deleted",
                where=f"stream {one.stream}",
                hint="to go back to an older batch: "
                f"slackwater plan rebuild {records[0].stream} --at {at_batch(plan.facts.target)}",
            )
