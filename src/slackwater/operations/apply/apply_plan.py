"""Applies a plan: makes it again, refuses if it differs, and runs its operations under the leases of their streams."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path

from slackwater.core.commands import apply_command, command, undo_command
from slackwater.core.errors import EnvironmentMissing, Refused, SlackwaterError, UsageError
from slackwater.core.program import QueryProfile
from slackwater.core.records import UNDOING, OperationFiles, OperationRecord, StreamRecord, leader_id
from slackwater.core.sink import Cut, Swap
from slackwater.core.snapshot import Snapshot
from slackwater.ledger.home import ensure_identity
from slackwater.ledger.lease import LeaseCheck
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.ledger.recording.history import history_of
from slackwater.ledger.recording.snapshot import look_at_stream, stream_id
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.ledger.workspace import Workspace
from slackwater.operations.action import Display, Precondition, PreconditionName
from slackwater.operations.actions.generations import pipeline_edited, query_in
from slackwater.operations.apply.executor import (
    DIGEST_SHOWN,
    check_consent,
    check_number,
    check_owner,
    compare,
    execute,
    plan_changed,
    summary_of,
)
from slackwater.operations.apply.journal import PRUNED, End, Journal
from slackwater.operations.apply.operation import PLAN_FILE, Operation, QueryRuntime, Replayer
from slackwater.operations.check_home import check_home, check_own
from slackwater.operations.gather import readers_now, reconcile
from slackwater.operations.make_plan import derive_all
from slackwater.operations.plan.assembly import listed
from slackwater.operations.plan.context import batches_used, written_text
from slackwater.operations.plan.document import has_plan, plan_again, render
from slackwater.operations.plan.plan import Plan, change_of
from slackwater.operations.planner import Planner
from slackwater.operations.stopped import check_stopped, modified_ms, written_since
from slackwater.sinks.common.contract import of_query
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.files.backfill_output import backfill_output, found_in

Opened = Callable[[Plan], AbstractContextManager[Callable[[], Replayer]]]
"""Opens the replayer of a plan on first use."""
BRIEF_MS = 30_000
"""Batches that took less in total gain less from a faster JVM than its start costs."""
_COMPARED = (
    "id", "goal", "stream", "pipeline_file", "request", "target", "facts", "preconditions", "actions", "undo",
)  # fmt: skip


def operations_of(
    workspace: Workspace, plan: Plan, progress: Display, fence: Callable[[str], int], session: tuple[str, ...] = ()
) -> tuple[Operation, ...]:
    """Builds the operations from the ledger; nothing is written. ``ready`` adds replays and preconditions."""
    members = {one.stream for one in plan.members}

    def readers(stream: StreamRecord, cut: Cut) -> list[str]:
        # The logs of the members were copied under their leases.
        return readers_now(workspace, stream, cut, set(members))

    leader = workspace.ledger.find_stream(plan.stream)
    whole = workspace.home.operation(leader.pipeline, leader.name, plan.id)
    found = []
    for one in plan.members:
        stream = workspace.ledger.find_stream(one.stream)
        history = history_of(workspace.ledger, stream)
        epoch = fence(stream.full_name)
        check_lease = LeaseCheck(workspace.ledger, stream.full_name, epoch)
        folder = workspace.home.operation(stream.pipeline, stream.name, one.id)
        operation = Operation(
            plan=one,
            # Outputs are owned by the id in ``stream.json``.
            stream=stream._replace(id=stream_id(workspace.home, stream)),
            home=workspace.home,
            ledger=workspace.ledger,
            journal=Journal(folder, workspace.ledger, check_lease),
            output=of_query(open_output(stream.sink), query_in(one)),
            history=history,
            look=dict,
            open_replayer=_no_replayer,
            readers=readers,
            progress=progress,
            epoch=epoch,
            check_lease=check_lease,
            whole=whole,
            session=session,
        )
        found.append(operation)
    return tuple(found)


def ready(
    workspace: Workspace, operation: Operation, code: QueryRuntime, open_replayer: Callable[[], Replayer]
) -> Operation:
    return operation._replace(look=lambda: _facts(workspace, operation, code), open_replayer=open_replayer)


def _no_replayer() -> Replayer:
    raise EnvironmentMissing(
        "replayer-unneeded",
        "Undo does not replay batches",
        hint="this is a defect of Slackwater: repeat the command with --debug, and report the traceback",
    )


def _facts(
    workspace: Workspace, operation: Operation, code: QueryRuntime
) -> Mapping[PreconditionName, Callable[[], str]]:
    """The facts of preconditions: checkpoint and output are read at most once."""
    plan, stream, history = operation.plan, operation.stream, operation.history
    ledger, batches = workspace.ledger, BatchHistory(history)
    facts, target = plan.facts, plan.facts.target
    change = change_of(plan.actions)
    into = plan.request.into

    output = operation.output

    def readers() -> list[str]:
        if isinstance(change, Swap):
            return operation.readers(stream, output.whole(history.written))
        return operation.readers(stream, change) if isinstance(change, Cut) else []

    def seen() -> str:
        if isinstance(change, Swap):
            return output.swap_of(plan.id, stream.id or "", target).seen
        return output.cut_after(change.after, history.written).seen if isinstance(change, Cut) else ""

    def started_ms() -> int:
        # The clock of the files, not that of the ledger's server.
        return modified_ms(workspace.home.operation(stream.pipeline, stream.name, plan.id) / PLAN_FILE)

    def current() -> StreamRecord:
        return ledger.find_stream(stream.full_name)

    @cache
    def snapshot() -> Snapshot:
        return look_at_stream(ledger, workspace.home, current(), own_lease=True)[0]

    return {
        "generation": lambda: str(current().current_generation),
        "planned": lambda: str(snapshot().marks.planned),
        "committed": lambda: str(snapshot().marks.committed),
        "written": lambda: written_text(snapshot()),
        "history": lambda: batches.digest(batches_used(facts.contributing, target, facts.pending)),
        "pipeline": lambda: code.digest(plan.pipeline_file),
        "readers": lambda: listed(readers()),
        "others": seen,
        "backfill-directory": lambda: listed(() if into is None else found_in(backfill_output(stream.sink, into))),
        "writer": lambda: written_since(workspace, current(), started_ms()),
        "source-files": lambda: listed(
            batches.missing_for(facts.contributing, target, StoreAvailability(), plan.request.ranges)
        ),
    }


def apply_plan(
    workspace: Workspace,
    plan: Plan,
    runtime: QueryRuntime,
    display: Display,
    *,
    file: Path | str = "PLAN",
    stopped: bool = False,
    discard_others: bool = False,
    session: tuple[str, ...] = (),
) -> bool:
    """Apply the plan once; ``False`` if it had been applied before.

    Raises Refused (nothing changed) or OutcomeUnknown (nothing more is touched).

    ``file`` and ``session``, options of Spark, are for printed commands.
    """
    if not discard_others and not is_started(workspace, plan):
        given = ("--confirm", plan.stream.rpartition("/")[2]) if plan.needs_name else ("--yes",)
        check_consent(plan, command("apply", str(file), *given, *session))
    check_home(workspace, display.say)
    ledger = workspace.ledger
    _check_whole(workspace, plan)
    if all(_status(workspace, one) in {"applied", PRUNED} for one in plan.members):
        return False
    streams = [ledger.find_stream(one.stream) for one in plan.members]
    # In this order: the JVM of a replayer writes until it has ended, and only then may the leases be released.
    with (
        LeaseKeeper(
            [one.full_name for one in streams], workspace.home, ledger, f"apply {plan.goal}", display.say
        ) as leases,
        _one_at_a_time(workspace, runtime, leases.add_jvm, plan) as opened,
    ):
        for stream in streams:
            reconcile(workspace, stream)
        if not plan.actions:
            # Not recorded as an operation: there is nothing that could be continued or undone.
            _check_derived(workspace, plan, runtime, opened)
            return True
        operations = operations_of(workspace, plan, display, leases.fence, session)
        if operations[0].journal.in_progress or operations[0].journal.end in {"applied", PRUNED}:
            # All stages are checked before the first one is continued: a later refusal would leave the others changed.
            for operation in operations:
                _check_continued(workspace, operation)
        else:
            for stream in streams:
                check_stopped(workspace, stream, since_ms=0, stopped=stopped)
            _begin(workspace, operations, runtime, opened)
        changed = []
        for operation in operations:
            with opened(operation.plan) as open_replayer:
                changed.append(_apply_one(operations, ready(workspace, operation, runtime, open_replayer)))
    return any(changed)


def is_started(workspace: Workspace, plan: Plan) -> bool:
    """Whether the operation was started, and neither refused nor undone."""
    return _status(workspace, plan) not in {None, "refused", "undone"}


def _status(workspace: Workspace, plan: Plan) -> str | None:
    record = _recorded(workspace.ledger, plan)
    return None if record is None else record.status


def _recorded(ledger: Ledger, plan: Plan) -> OperationRecord | None:
    return next((one for one in ledger.operations(plan.stream) if one.id == plan.id), None)


def _check_whole(workspace: Workspace, plan: Plan) -> None:
    leader = leader_id(plan.id)
    if leader == plan.id:
        return
    records = (one for stream in workspace.ledger.streams() for one in workspace.ledger.operations(stream.full_name))
    whole = next((one for one in records if one.id == leader), None)
    hint = "apply the parent plan"
    if whole is not None:
        pipeline, name = whole.stream.split("/", 1)
        hint = command("apply", str(workspace.home.operation(pipeline, name, leader) / PLAN_FILE), "--yes")
    raise Refused(
        "plan-of-a-part",
        f"This plan is a downstream part of operation {leader}",
        where=f"stream {plan.stream}",
        hint=hint,
    )


def _apply_one(operations: Sequence[Operation], operation: Operation) -> bool:
    plan, ledger, journal = operation.plan, operation.ledger, operation.journal
    if journal.end in {"applied", PRUNED}:
        # Killed between the journal's last line and the ledger's, or later.
        _end(ledger, plan, journal.end, summary_of(plan))
        return False
    try:
        execute(operation)
    finally:
        # Later stages are recorded as ``applying``, which would refuse any other plan for their streams.
        if operations[0].journal.end == "refused":
            for one in operations[1:]:
                _end(ledger, one.plan, "refused", f"operation {operations[0].plan.id} was refused")
    return True


def _begin(workspace: Workspace, operations: Sequence[Operation], runtime: QueryRuntime, opened: Opened) -> None:
    """Records first the operation of the whole, which is undone."""
    try:
        _check_derived(workspace, operations[0].plan, runtime, opened)
    except SlackwaterError as error:
        # Recorded by an attempt that was killed before its first action: it must not keep the streams from a new plan.
        for operation in operations:
            _end(operation.ledger, operation.plan, "refused", str(error))
        raise
    for operation in operations:
        # The ledger's record last: an operation that it lists as unfinished has the plan that apply and undo read.
        plan, content = operation.plan, render(operation.plan)
        operation.files.write(PLAN_FILE, content.encode())
        now_ms, home = operation.ledger.now_ms(), ensure_identity(operation.home)
        operation.journal.begin(OperationFiles(plan.id, home, operation.stream.id or "", content))
        file = str(operation.whole / PLAN_FILE)
        operation.ledger.begin_operation(
            OperationRecord(plan.id, plan.stream, plan.goal, "applying", now_ms, summary=file)
        )


def _check_derived(workspace: Workspace, plan: Plan, code: QueryRuntime, opened: Opened) -> None:
    """Raises Moved if facts changed, UsageError if the plan was edited. The ledger was updated under the leases."""
    members = {one.stream: one for one in plan.members}

    def read_query(stream: StreamRecord, _target: int | None) -> QueryProfile | None:
        member = members.get(stream.full_name)
        # A plan that was made without Spark is derived without it, too.
        if member is None or not member.request.query_read:
            return None
        with opened(member) as open_replayer:
            return open_replayer().profile()

    planner = Planner(
        workspace, code, read_query, identity=plan.id, made_at=plan.made_at, own_lease=True, updated=members
    )
    facts = planner.facts(workspace.ledger.find_stream(plan.stream), plan.pipeline_file, plan.goal)
    derived = derive_all(planner, facts, plan.request)
    again = {one.stream: one for one in derived.members}
    # Facts first: a stream that has changed is reported as that, and not as an edited plan.
    for one in plan.members:
        if one.stream in again:
            # The marks also where nothing is left to do: such a plan has no preconditions.
            found = {(0, name): str(getattr(again[one.stream].facts, name)) for name in ("planned", "committed")}
            found |= {(known.action, known.name): known.expected for known in again[one.stream].preconditions}
            places = ((known, (known.action, known.name)) for known in one.preconditions)
            compare(one, ((known, found[place]) for known, place in places if place in found), plan)
    if [one.stream for one in plan.members] != [one.stream for one in derived.members]:
        raise _plan_edited(plan, "later stages", list(again), list(members), plan)
    for one in plan.members:
        check_number(one, again[one.stream], plan)
        for field in _COMPARED:
            planned, now = getattr(one, field), getattr(again[one.stream], field)
            if planned != now:
                raise _plan_edited(one, field, now, planned, plan)


def _plan_edited(plan: Plan, what: str, expected: object, found: object, whole: Plan) -> UsageError:
    return UsageError(
        "plan-damaged",
        f"The plan was changed or damaged: its part '{what}' does not match this request",
        where=f"stream {plan.stream}",
        expected=_shortened(expected),
        found=_shortened(found),
        hint=f"nothing was changed; plan again: {plan_again(whole)}",
    )


def _shortened(value: object) -> str:
    shown = str(value)
    return shown if len(shown) <= 200 else shown[:200] + "..."  # noqa: PLR2004 - enough to see what differs


def _end(ledger: Ledger, plan: Plan, end: End, summary: str) -> None:
    record = _recorded(ledger, plan)
    if record is not None and record.ended_ms is None:
        ledger.end_operation(plan.id, end, summary)


def _check_continued(workspace: Workspace, operation: Operation) -> None:
    check_own(workspace, operation.plan.id)
    if operation.journal.being_undone or _status(workspace, operation.plan) == UNDOING:
        raise Refused(
            "undo-unfinished",
            f"Operation {operation.plan.id} is being undone; its results may already be removed",
            where=str(operation.folder),
            hint=undo_command(operation.plan.id),
        )
    file, known = operation.folder / PLAN_FILE, operation.journal.files
    is_lost = known is not None and not operation.files.exists(PLAN_FILE)
    recorded = known.plan if known is not None and is_lost else operation.files.read(PLAN_FILE).decode()
    if known is not None and recorded != known.plan:
        raise plan_changed(operation.plan.id, file)
    if not has_plan(recorded, operation.plan):
        raise Refused(
            "plan-differs",
            f"Operation {operation.plan.id} was started with a different plan of this id",
            where=str(file),
            hint="continue with the plan that it started with: "
            f"{apply_command(str(operation.whole / PLAN_FILE), operation.session)}\n"
            f"or, to go back: {undo_command(operation.plan.id)}",
        )
    if operation.journal.end is None:
        check_owner(operation)
        for action in operation.plan.actions:
            action.check_continued(operation)


@contextmanager
def _one_at_a_time(
    workspace: Workspace, runtime: QueryRuntime, on_jvm: Callable[[int], None], whole: Plan
) -> Iterator[Opened]:
    """Keeps a replayer between uses, so that Spark starts once."""
    with ExitStack() as stack:
        kept: dict[str, Replayer] = {}

        def open_replayer(plan: Plan) -> Replayer:
            if plan.id in kept:
                return kept[plan.id]
            try:
                runtime.require_spark()
            except EnvironmentMissing as error:
                error.hint = f"{error.hint}; applying plan {plan.id} replays batches with Spark"
                raise
            # A file whose digest is not in the plan is refused first: loading would run its code.
            named = [one for one in plan.preconditions if one.name == "pipeline"]
            named = named or [Precondition(0, "pipeline", "no digest")]
            found = runtime.digest(plan.pipeline_file)
            if not is_started(workspace, plan):
                compare(plan, ((one, found) for one in named), whole)
            elif any(one.expected != found for one in named):
                raise pipeline_edited(plan, named[0].expected[:DIGEST_SHOWN], found[:DIGEST_SHOWN])
            work, stream = plan.cost.apply, workspace.ledger.find_stream(plan.stream)
            brief = work.batches == 0 or (work.duration_ms is not None and work.duration_ms <= BRIEF_MS)
            opened = runtime.open_replayer(workspace, stream, plan.pipeline_file, on_jvm, brief=brief)
            kept[plan.id] = stack.enter_context(opened)
            return kept[plan.id]

        @contextmanager
        def keep(plan: Plan) -> Iterator[Callable[[], Replayer]]:
            # Spark allows one ``SparkContext`` in a process, and each pipeline file has its own session
            if plan.id not in kept:
                stack.close()
                kept.clear()
            yield lambda: open_replayer(plan)

        yield keep
