"""Use case: apply a plan, or continue one whose apply was interrupted."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from slackwater.app.acting import Consent, acting
from slackwater.app.adopted import check_stopped
from slackwater.app.deriving import reconcile
from slackwater.app.one_replayer import Opened, one_at_a_time
from slackwater.app.operations import operations_of
from slackwater.app.run_pipeline import session_options
from slackwater.app.unchanged import check_derived
from slackwater.app.workspace import Workspace
from slackwater.apply.executor import execute, summary_of
from slackwater.apply.journal import PRUNED
from slackwater.apply.operation import PLAN_FILE, Operation
from slackwater.apply.replayer import Replayer
from slackwater.diagnose.words import undo_command
from slackwater.errors import EnvironmentMissing, Refused, SlackwaterError
from slackwater.lease.keeper import LeaseKeeper
from slackwater.model.actions import Action, Inverse
from slackwater.model.plan import Plan
from slackwater.model.records import UNDOING, OperationRecord, leader_id
from slackwater.plan.document import render
from slackwater.runtime.loader import load
from slackwater.runtime.replay import SparkReplayer
from slackwater.runtime.session import require_spark
from slackwater.storage.local import LocalStore


class ApplyDisplay(Protocol):
    """The display of an apply."""

    def say(self, text: str) -> None:
        """A message."""

    def action(self, action: Action | Inverse) -> None:
        """An action starts."""

    def batch(self, batch: int) -> None:
        """A batch was replayed."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of an apply. ``repeated`` is true where it had been applied before, so that nothing was done now."""

    plan: Plan
    outcome: Literal["applied"] = "applied"
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How Spark is started for the replay, and what the user declares: about a home that was moved or copied, and
    that a query that Slackwater does not run was ``stopped``."""

    spark: Mapping[str, str]
    master: str | None = None
    consent: Consent = None
    stopped: bool = False


Replaying = Callable[[Plan, Callable[[int], None]], AbstractContextManager[Callable[[], Replayer]]]
"""Opens the replayer for one plan when it is first asked for, and closes it with the block; is given who records the
JVM's pid."""


def apply_plan(workspace: Workspace, plan: Plan, display: ApplyDisplay, options: ApplyOptions) -> Applied:
    """Apply the plan with Spark, once. Raises Refused (nothing changed) or OutcomeUnknown (nothing more is touched)."""

    def replaying(one: Plan, on_jvm: Callable[[int], None]) -> AbstractContextManager[Callable[[], Replayer]]:
        return _spark_replayer(workspace, one, display, options, on_jvm)

    return apply_with(workspace, plan, display, replaying, options.consent, stopped=options.stopped)


def apply_with(
    workspace: Workspace,
    plan: Plan,
    display: ApplyDisplay,
    replaying: Replaying,
    consent: Consent = None,
    *,
    stopped: bool = False,
) -> Applied:
    """The same with any replayer."""
    acting(workspace, consent, display.say)
    ledger = workspace.ledger
    _check_whole(workspace, plan)
    if all(_status(workspace, one) in {"applied", PRUNED} for one in plan.members):
        return Applied(plan, repeated=True)
    streams = [ledger.find_stream(one.stream) for one in plan.members]
    with (
        LeaseKeeper(streams, workspace.home, ledger, f"apply {plan.goal}", display.say) as leases,
        one_at_a_time(lambda one: replaying(one, leases.add_jvm)) as opened,
    ):
        for stream in streams:
            reconcile(workspace, stream)
        if not plan.actions:
            # Not recorded as an operation: there is nothing that could be continued or undone.
            check_derived(workspace, plan, opened)
            return Applied(plan)
        operations = operations_of(workspace, plan, display, leases.fence)
        if operations[0].journal.in_progress or operations[0].journal.end in {"applied", PRUNED}:
            for operation in operations:
                _check_continued(operation)
        else:
            for stream in streams:
                check_stopped(workspace, stream, since_ms=0, stopped=stopped)
            _begin(workspace, operations, opened)
        changed = [_apply_one(operations, operation, opened) for operation in operations]
    return Applied(plan, repeated=not any(changed))


def is_started(workspace: Workspace, plan: Plan) -> bool:
    """Whether the plan was applied before, or an apply of it was interrupted."""
    return _status(workspace, plan) not in {None, "refused"}


def _status(workspace: Workspace, plan: Plan) -> str | None:
    """The recorded status of the operation of a plan, ``None`` where it was never started."""
    operations = workspace.ledger.operations(plan.stream)
    return next((one.status for one in operations if one.id == plan.id), None)


def _check_whole(workspace: Workspace, plan: Plan) -> None:
    """Raises Refused for the plan of a later stage alone."""
    leader = leader_id(plan.id)
    if leader == plan.id:
        return
    records = (one for stream in workspace.ledger.streams() for one in workspace.ledger.operations(stream.full_name))
    whole = next((one for one in records if one.id == leader), None)
    raise Refused(
        "plan-of-a-part",
        f"This is the part of operation {leader} that is about a later stage: it is applied with the whole",
        where=f"stream {plan.stream}",
        hint="apply the plan that it is a part of"
        if whole is None
        else f"slackwater apply {shlex.quote(str(_file_of(workspace, whole.stream, leader)))} --yes",
    )


def _file_of(workspace: Workspace, stream: str, operation: str) -> Path:
    pipeline, name = stream.split("/", 1)
    return workspace.home.operation(pipeline, name, operation) / PLAN_FILE


def _apply_one(operations: Sequence[Operation], operation: Operation, opened: Opened) -> bool:
    """Apply the plan of one stream, or what is left of it; false where nothing was."""
    plan, ledger, journal = operation.plan, operation.ledger, operation.journal
    if journal.end in {"applied", PRUNED}:
        # Killed between the journal's last line and the ledger's, or later.
        if any(one.id == plan.id and one.ended_ms is None for one in ledger.operations(plan.stream)):
            ledger.end_operation(plan.id, journal.end, summary_of(plan))
        return False
    try:
        with opened(plan) as open_replayer:
            execute(replace(operation, open_replayer=open_replayer))
    finally:
        if operations[0].journal.end == "refused":
            _end_as_refused(operations[1:], f"operation {operations[0].plan.id} was refused")
    return True


def _begin(workspace: Workspace, operations: Sequence[Operation], opened: Opened) -> None:
    """Compare the plan with one derived now, then record the operations: that of the whole first, which is undone."""
    try:
        check_derived(workspace, operations[0].plan, opened)
    except SlackwaterError as error:
        # Recorded by an attempt that was killed before its first action: it must not keep the streams from a new plan.
        _end_as_refused(operations, str(error))
        raise
    for operation in operations:
        _record(operation)


def _end_as_refused(operations: Sequence[Operation], why: str) -> None:
    for operation in operations:
        plan = operation.plan
        if any(one.id == plan.id and one.ended_ms is None for one in operation.ledger.operations(plan.stream)):
            operation.ledger.end_operation(plan.id, "refused", why)


def _check_continued(operation: Operation) -> None:
    """A continued apply takes the same plan that it started with, and not one that is being undone."""
    undoing = any(
        one.id == operation.plan.id and one.status == UNDOING
        for one in operation.ledger.operations(operation.plan.stream)
    )
    if operation.journal.being_undone or undoing:
        raise Refused(
            "undo-unfinished",
            f"Operation {operation.plan.id} is being undone; what it had built may be removed already",
            where=str(operation.folder),
            hint=undo_command(operation.plan.id),
        )
    recorded = LocalStore(operation.folder).read(PLAN_FILE).decode()
    if recorded != render(operation.plan):
        raise Refused(
            "plan-differs",
            f"Operation {operation.plan.id} was started with another plan of this id",
            where=str(operation.folder / PLAN_FILE),
            hint="continue with the plan that it started with: "
            f"slackwater apply {shlex.quote(str(operation.whole / PLAN_FILE))} --yes\n"
            f"or, to go back: {undo_command(operation.plan.id)}",
        )


def _record(operation: Operation) -> None:
    """The operation's folder, plan and ledger record, before its first action."""
    store = LocalStore(operation.folder, private=True)
    store.write(PLAN_FILE, render(operation.plan).encode())
    plan, now_ms = operation.plan, operation.ledger.now_ms()
    operation.ledger.begin_operation(
        OperationRecord(plan.id, plan.stream, plan.goal, "applying", now_ms, summary=str(operation.whole / PLAN_FILE))
    )


@contextmanager
def _spark_replayer(
    workspace: Workspace,
    plan: Plan,
    display: ApplyDisplay,
    options: ApplyOptions,
    on_jvm: Callable[[int], None],
) -> Iterator[Callable[[], Replayer]]:
    """A replayer that loads the pipeline and starts Spark when it is first asked for; ended with the block."""
    opened: list[SparkReplayer] = []

    def open_once() -> Replayer:
        if not opened:
            _require(plan)
            loaded = load(plan.pipeline_file)
            session = session_options(loaded, workspace.settings, options.master, options.spark)
            name = plan.stream.rpartition("/")[2]
            opened.append(
                SparkReplayer(loaded, name, session, home=workspace.home.path, say=display.say, on_jvm=on_jvm)
            )
        return opened[0]

    try:
        yield open_once
    finally:
        for replayer in opened:
            replayer.close()


def _require(plan: Plan) -> None:
    try:
        require_spark()
    except EnvironmentMissing as error:
        error.hint = f"{error.hint}; applying plan {plan.id} replays batches with Spark"
        raise
