from collections.abc import Sequence
from functools import partial

from slackwater.core.commands import command
from slackwater.core.errors import DataError, FormatError, NotFound, Refused, UsageError
from slackwater.core.records import UNDOING, OperationRecord, leader_id
from slackwater.core.settings import Settings
from slackwater.ledger.home import Home
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.recording.history import readers_of
from slackwater.ledger.workspace import Workspace, open_workspace
from slackwater.operations.action import Display
from slackwater.operations.apply.apply_plan import operations_of
from slackwater.operations.apply.executor import check_undo, plan_changed, undo
from slackwater.operations.apply.journal import JOURNAL, PRUNED
from slackwater.operations.apply.operation import PLAN_FILE, Operation
from slackwater.operations.check_home import check_home, check_own
from slackwater.operations.gather import reconcile
from slackwater.operations.plan.document import IDENTIFIER, at_batch, parse
from slackwater.operations.plan.plan import Plan
from slackwater.operations.stopped import check_stopped, modified_ms
from slackwater.storage.open import AnyLocation, Location, open_read_store

ENDED_WITHOUT_EFFECT = frozenset({"undone", "refused"})
"""Statuses with nothing to undo."""


def find_operation(workspace: Workspace, name: str) -> OperationRecord:
    """Finds an operation by a part of its id. Raises NotFound (``operation-unknown``)."""
    ledger = workspace.ledger
    operations = {one.id: one for stream in ledger.streams() for one in ledger.operations(stream.full_name)}
    if name in operations and leader_id(name) in operations:
        return operations[leader_id(name)]
    raise NotFound(
        "operation-unknown",
        f"The ledger has no operation {name}",
        expected=", ".join([*operations][-5:]) or "none: no operation was applied in this home",
        hint=f"{command('ledger', '--operations')} lists them",
    )


def plan_of_operation(workspace: Workspace, operation: OperationRecord) -> Plan:
    """The plan of a recorded operation. Raises NotFound, or UsageError if the plan was changed."""
    if IDENTIFIER.fullmatch(operation.id) is None:
        raise DataError(
            "ledger-unreadable",
            "The ledger lists an operation whose id is not from Slackwater",
            expected="an id such as 20260105T093000-1a2b3c",
            found=operation.id[:60],
            hint="restore the ledger from a backup; nothing was changed",
        )
    pipeline, name = operation.stream.split("/", 1)
    folder = workspace.home.operation(pipeline, name, operation.id)
    known = workspace.ledger.operation_files(operation.id)
    try:
        content = open_read_store(folder).read(PLAN_FILE).decode("utf-8", "replace")
    except FileNotFoundError as error:
        if known is None:
            raise NotFound(
                "operation-folder-missing",
                f"The folder of operation {operation.id} has no plan",
                where=str(folder / PLAN_FILE),
                expected="the plan, here or in the ledger",
                hint="restore the folder from a backup; nothing was changed",
            ) from error
        content = known.plan
    if known is not None and content != known.plan:
        raise plan_changed(operation.id, folder / PLAN_FILE)
    plan = parse(content, folder / PLAN_FILE)
    if (plan.id, plan.stream) != (operation.id, operation.stream):
        raise UsageError(
            "plan-damaged",
            "The plan in the folder of the operation belongs to a different operation",
            where=str(folder / PLAN_FILE),
            expected=f"{operation.id} on {operation.stream}",
            found=f"{plan.id} on {plan.stream}",
            hint="restore the folder from a backup; nothing was changed",
        )
    return plan


def recorded_plan(settings: Settings, file: AnyLocation) -> Plan | None:
    file, home = Location(file), Home(settings.home)
    if not file.startswith(home.location / ""):
        return None
    try:
        with open_workspace(settings) as workspace:
            ledger = workspace.ledger
            for one in (record for name in ledger.stream_names() for record in ledger.operations(name)):
                pipeline, name = one.stream.split("/", 1)
                if home.operation(pipeline, name, one.id) / PLAN_FILE == file:
                    return plan_of_operation(workspace, one)
    except NotFound:
        return None
    return None


def undo_operation(
    workspace: Workspace, operation: OperationRecord, plan: Plan, display: Display, *, stopped: bool = False
) -> bool:
    """``False`` if it has no effect left. Raises Refused if a stream has run since, or the backup was pruned."""
    check_home(workspace, display.say)
    check_own(workspace, operation.id)
    records = _records(workspace, operation, plan)
    if all(one.status in ENDED_WITHOUT_EFFECT for one in records):
        return False
    _check_kept(records, plan)
    streams = [workspace.ledger.find_stream(one.stream) for one in plan.members]
    with LeaseKeeper(
        [one.full_name for one in streams], workspace.home, workspace.ledger, f"undo {plan.goal}", display.say
    ) as leases:
        for stream in streams:
            reconcile(workspace, stream)
        left = _left(operations_of(workspace, plan, display, leases.fence), records)
        for one, record in left:
            _check(one, record)
            # What the operation itself has written is older than the last line of its journal.
            since_ms = modified_ms(one.folder / JOURNAL)
            check_stopped(workspace, one.stream, since_ms=since_ms, stopped=stopped)
        for one, record in left:
            # Open until it has ended: a run between two steps of an undo that was killed would find neither state.
            file = str(one.whole / PLAN_FILE)
            workspace.ledger.begin_operation(record._replace(status=UNDOING, ended_ms=None, summary=file))
        for one, _ in reversed(left):
            undo(one)
    return True


def check_undoable(workspace: Workspace, operation: OperationRecord) -> None:
    """Raises the errors of an undo, as far as they can be seen; nothing is written."""
    plan = plan_of_operation(workspace, operation)
    records = _records(workspace, operation, plan)
    _check_kept(records, plan)
    check_own(workspace, operation.id)
    recorded = partial(readers_of, workspace.ledger)
    # No lease is held here: with fence number 0 any write to a journal would be refused.
    for one, record in _left(operations_of(workspace, plan, Display(), lambda _: 0), records):
        _check(one._replace(readers=recorded), record)


def _check(operation: Operation, record: OperationRecord) -> None:
    if record.status not in {"applying", UNDOING} and not operation.journal.has_effect:
        raise FormatError(
            "journal-damaged",
            f"The journal of operation {record.id} is missing: what the operation has changed is unknown",
            where=str(operation.folder / JOURNAL),
            expected="the lines of an operation that was applied",
            found="no line",
            hint="restore the file from a backup; nothing was changed",
        )
    check_undo(operation)


def _records(workspace: Workspace, operation: OperationRecord, plan: Plan) -> list[OperationRecord]:
    """An operation killed before its record has changed nothing."""
    ledger, ids = workspace.ledger, [one.id for one in plan.downstream]
    later = [one for stage in plan.downstream for one in ledger.operations(stage.stream) if one.id in ids]
    return [operation, *later]


def _left(
    operations: Sequence[Operation], records: Sequence[OperationRecord]
) -> list[tuple[Operation, OperationRecord]]:
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
                f"{command('plan', 'rebuild', records[0].stream, '--at', at_batch(plan.facts.target))}",
            )
