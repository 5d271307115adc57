"""Use case: apply a plan, or continue one whose apply was interrupted."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from slackwater.app.acting import Consent, acting
from slackwater.app.deriving import Asked, derive, reconcile
from slackwater.app.run_pipeline import session_options
from slackwater.app.workspace import Workspace
from slackwater.apply.executor import execute, summary_of
from slackwater.apply.journal import PRUNED, Journal
from slackwater.apply.operation import PLAN_FILE, Operation
from slackwater.apply.preconditions import compare
from slackwater.apply.replayer import Replayer
from slackwater.errors import EnvironmentMissing, Refused, SlackwaterError, UsageError
from slackwater.lease.keeper import LeaseKeeper
from slackwater.model.history import History
from slackwater.model.plan import Action, CutSink, Inverse, Plan, PreconditionName, SwapOutput
from slackwater.model.profile import QueryProfile
from slackwater.model.records import OperationRecord, StreamRecord
from slackwater.model.sink import Cut
from slackwater.plan.basis import BEFORE_ALL, batches_used, written_text
from slackwater.plan.batch_history import BatchHistory
from slackwater.plan.document import render
from slackwater.plan.words import plan_again
from slackwater.recording.history import history_of, readers_of
from slackwater.recording.reach import StoreReach
from slackwater.recording.snapshot import SnapshotContext, read_snapshot, stream_id
from slackwater.runtime.loader import digest, load
from slackwater.runtime.replay import SparkReplayer
from slackwater.runtime.session import require_spark
from slackwater.sinks.registry import open_output
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
    """How Spark is started for the replay, and what the user declares about a home that was moved or copied."""

    spark: Mapping[str, str]
    master: str | None = None
    consent: Consent = None


Replaying = Callable[[Callable[[int], None]], AbstractContextManager[Callable[[], Replayer]]]
"""Opens a replayer when it is first asked for, and closes it with the block; is given who records the JVM's pid."""


def apply_plan(workspace: Workspace, plan: Plan, display: ApplyDisplay, options: ApplyOptions) -> Applied:
    """Apply the plan with Spark, once. Raises Refused (nothing changed) or OutcomeUnknown (nothing more is touched)."""

    def replaying(on_jvm: Callable[[int], None]) -> AbstractContextManager[Callable[[], Replayer]]:
        return _spark_replayer(workspace, plan, display, options, on_jvm)

    return apply_with(workspace, plan, display, replaying, options.consent)


def apply_with(
    workspace: Workspace, plan: Plan, display: ApplyDisplay, replaying: Replaying, consent: Consent = None
) -> Applied:
    """The same with any replayer."""
    acting(workspace, consent, display.say)
    ledger = workspace.ledger
    stream = ledger.find_stream(plan.stream)
    if any(one.id == plan.id and one.status in {"applied", PRUNED} for one in ledger.operations(plan.stream)):
        return Applied(plan, repeated=True)
    with (
        LeaseKeeper([stream], workspace.home, ledger, f"apply {plan.goal}", display.say) as leases,
        replaying(leases.add_jvm) as open_replayer,
    ):
        reconcile(workspace, stream)
        epoch = leases.fence(stream.full_name)
        operation = _operation(workspace, plan, stream, display, open_replayer, epoch=epoch)
        if not plan.actions:
            # Not recorded as an operation: there is nothing that could be continued or undone.
            _check_derived(workspace, operation, lambda: open_replayer().profile())
            return Applied(plan)
        if operation.journal.end in {"applied", PRUNED}:
            # Killed between the journal's last line and the ledger's.
            ledger.end_operation(plan.id, operation.journal.end, summary_of(plan))
            return Applied(plan, repeated=True)
        if operation.journal.in_progress:
            _check_continued(operation)
        else:
            _begin(workspace, operation, lambda: open_replayer().profile())
        execute(operation)
    return Applied(plan)


def is_started(workspace: Workspace, plan: Plan) -> bool:
    """Whether the plan was applied before, or an apply of it was interrupted."""
    return any(one.id == plan.id and one.status != "refused" for one in workspace.ledger.operations(plan.stream))


def _begin(workspace: Workspace, operation: Operation, read_query: Callable[[], QueryProfile]) -> None:
    """Compare the plan with one derived now, then record the operation."""
    plan, ledger = operation.plan, workspace.ledger
    try:
        _check_derived(workspace, operation, read_query)
    except SlackwaterError as error:
        # Recorded by an attempt that was killed before its first action: it must not keep the stream from a new plan.
        if any(one.id == plan.id and one.ended_ms is None for one in ledger.operations(plan.stream)):
            ledger.end_operation(plan.id, "refused", str(error))
        raise
    _record(operation)


def operation_for_undo(
    workspace: Workspace, plan: Plan, stream: StreamRecord, display: ApplyDisplay, epoch: int
) -> Operation:
    """The operation of a plan that is going to be taken back: no Spark is needed for that."""
    reconcile(workspace, stream)
    return operation_as_recorded(workspace, plan, stream, display, epoch)


def operation_as_recorded(
    workspace: Workspace, plan: Plan, stream: StreamRecord, display: ApplyDisplay, epoch: int = 0
) -> Operation:
    """The same, of what the ledger has now; nothing is written."""

    def no_replayer() -> Replayer:
        raise EnvironmentMissing("replayer-unneeded", "Taking an operation back replays nothing")

    return _operation(workspace, plan, stream, display, no_replayer, epoch=epoch)


def _operation(
    workspace: Workspace,
    plan: Plan,
    stream: StreamRecord,
    display: ApplyDisplay,
    open_replayer: Callable[[], Replayer],
    *,
    epoch: int,
) -> Operation:
    history = history_of(workspace.ledger, stream)
    return Operation(
        plan=plan,
        stream=replace(stream, id=stream_id(workspace.home, stream)),
        home=workspace.home,
        ledger=workspace.ledger,
        journal=Journal(workspace.home.operation(stream.pipeline, stream.name, plan.id)),
        output=open_output(stream.sink),
        history=history,
        facts=_facts(workspace, stream, plan, history),
        open_replayer=open_replayer,
        progress=display,
        epoch=epoch,
    )


def _check_derived(workspace: Workspace, operation: Operation, read_query: Callable[[], QueryProfile]) -> None:
    """Raises Moved where facts changed since the plan was made, UsageError where the plan itself was edited."""
    plan = operation.plan
    asked = Asked(plan.goal, plan.request, plan.pipeline_file)
    # A plan that was made without Spark is derived without it, too.
    reader = read_query if plan.request.query_read else lambda: None
    derived = derive(workspace, operation.stream, asked, reader, identity=(plan.id, plan.made_at), own_lease=True).plan
    facts = {(one.action, one.name): one.expected for one in derived.preconditions}
    known = [one for one in plan.preconditions if (one.action, one.name) in facts]
    compare(plan, known, lambda one: facts[one.action, one.name])
    for field in ("goal", "stream", "pipeline_file", "target", "facts", "preconditions", "actions", "undo"):
        if getattr(plan, field) != getattr(derived, field):
            raise UsageError(
                "plan-damaged",
                f"The plan was changed or damaged: its {field} are not those of this request",
                where=f"stream {plan.stream}",
                expected=_short(getattr(derived, field)),
                found=_short(getattr(plan, field)),
                hint=f"nothing was changed; plan again: {plan_again(plan)}",
            )


def _short(value: object) -> str:
    shown = str(value)
    return shown if len(shown) <= 200 else shown[:200] + "..."  # noqa: PLR2004 - enough to see what differs


def _check_continued(operation: Operation) -> None:
    """A continued apply takes the same plan that it started with, and not one that is being undone."""
    if operation.journal.being_undone:
        raise Refused(
            "undo-unfinished",
            f"Operation {operation.plan.id} is being undone; what it had built may be removed already",
            where=str(operation.folder),
            hint=f"slackwater undo {operation.plan.id} --yes",
        )
    recorded = LocalStore(operation.folder).read(PLAN_FILE).decode()
    if recorded != render(operation.plan):
        raise Refused(
            "plan-differs",
            f"Operation {operation.plan.id} was started with another plan of this id",
            where=str(operation.folder / PLAN_FILE),
            hint="continue with the plan that it started with: "
            f"slackwater apply {shlex.quote(str(operation.folder / PLAN_FILE))} --yes\n"
            f"or, to go back: slackwater undo {operation.plan.id} --yes",
        )


def _record(operation: Operation) -> None:
    """The operation's folder, plan and ledger record, before its first action."""
    store = LocalStore(operation.folder, private=True)
    store.write(PLAN_FILE, render(operation.plan).encode())
    plan, now_ms = operation.plan, operation.ledger.now_ms()
    operation.ledger.begin_operation(
        OperationRecord(plan.id, plan.stream, plan.goal, "applying", now_ms, summary=str(operation.folder / PLAN_FILE))
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


def _facts(
    workspace: Workspace, stream: StreamRecord, plan: Plan, history: History
) -> Mapping[PreconditionName, Callable[[], str]]:
    """How the fact of each precondition is looked up."""
    ledger, batches = workspace.ledger, BatchHistory(history)
    facts, target = plan.facts, plan.facts.target
    cut = next((action.cut for action in plan.actions if isinstance(action, CutSink)), None)
    swapped = any(isinstance(action, SwapOutput) for action in plan.actions)
    context = SnapshotContext(ledger, workspace.home, own_lease=True)

    def whole() -> Cut:
        return open_output(stream.sink).cut_after(BEFORE_ALL, history.written)

    def current() -> StreamRecord:
        return ledger.find_stream(stream.full_name)

    return {
        "generation": lambda: str(current().current_generation),
        "planned": lambda: str(read_snapshot(context, current()).marks.planned),
        "committed": lambda: str(read_snapshot(context, current()).marks.committed),
        "written": lambda: written_text(read_snapshot(context, current())),
        "history": lambda: batches.digest(batches_used(facts.contributing, target, facts.pending)),
        "pipeline": lambda: digest(plan.pipeline_file),
        "readers": lambda: _listed(readers_of(ledger, stream, cut or whole()) if cut or swapped else []),
        "source-files": lambda: _listed(batches.missing_for(facts.contributing, target, StoreReach())),
    }


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
