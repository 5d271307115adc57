from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from slackwater.core.errors import EnvironmentMissing
from slackwater.core.records import StreamRecord
from slackwater.core.sink import Cut, Swap
from slackwater.core.snapshot import Snapshot
from slackwater.ledger.lease.lease import LeaseCheck
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.ledger.recording.history import history_of
from slackwater.ledger.recording.snapshot import look_at_stream, stream_id
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.ledger.workspace import Workspace
from slackwater.operations.action import PreconditionName
from slackwater.operations.actions.common.base import query_in
from slackwater.operations.adopted import modified_ms, written_since
from slackwater.operations.apply.journal import Journal
from slackwater.operations.apply.operation import PLAN_FILE, Operation, Progress
from slackwater.operations.apply.replayer import PipelineReader, Replayer
from slackwater.operations.gather import readers_now
from slackwater.operations.plan.assembly import listed
from slackwater.operations.plan.basis import batches_used, written_text
from slackwater.operations.plan.plan import Plan
from slackwater.sinks.common.contract import of_query
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.files.backfill_output import backfill_output, found_in


def operations_of(
    workspace: Workspace, plan: Plan, progress: Progress, fence: Callable[[str], int], session: tuple[str, ...] = ()
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
    workspace: Workspace, operation: Operation, code: PipelineReader, open_replayer: Callable[[], Replayer]
) -> Operation:
    return replace(operation, look=lambda: _facts(workspace, operation, code), open_replayer=open_replayer)


def _no_replayer() -> Replayer:
    raise EnvironmentMissing(
        "replayer-unneeded",
        "The undo of an operation replays nothing",
        hint="this is a defect of Slackwater: repeat the command with --debug, and report the traceback",
    )


def _facts(
    workspace: Workspace, operation: Operation, code: PipelineReader
) -> Mapping[PreconditionName, Callable[[], str]]:
    """The facts of preconditions: checkpoint and output are read at most once."""
    plan, stream, history = operation.plan, operation.stream, operation.history
    ledger, batches = workspace.ledger, BatchHistory(history)
    facts, target = plan.facts, plan.facts.target
    change = next((action.change for action in plan.actions if action.change is not None), None)
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
