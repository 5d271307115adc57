"""The operations of a plan: one for each stream that it is about, with what applying and undoing them needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from slackwater.app.adopted import modified_ms, written_since
from slackwater.app.workspace import Workspace
from slackwater.apply.journal import Journal
from slackwater.apply.operation import PLAN_FILE, Operation, Progress
from slackwater.apply.replayer import Replayer
from slackwater.errors import EnvironmentMissing
from slackwater.model.actions import CutSink, RunAside, SwapOutput
from slackwater.model.history import History
from slackwater.model.plan import Plan, PreconditionName
from slackwater.model.records import StreamRecord
from slackwater.plan.assembly import listed
from slackwater.plan.basis import batches_used, written_text
from slackwater.plan.batch_history import BatchHistory
from slackwater.recording.history import history_of, readers_of
from slackwater.recording.reach import StoreReach
from slackwater.recording.snapshot import SnapshotContext, read_snapshot, stream_id
from slackwater.runtime.loader import digest
from slackwater.sinks.contract import Swappable
from slackwater.sinks.registry import open_output
from slackwater.sinks.side_output import found_in


def operations_of(
    workspace: Workspace, plan: Plan, progress: Progress, fence: Callable[[str], int]
) -> tuple[Operation, ...]:
    """The operation of the plan, then those on later stages, of what the ledger has now. Nothing is written.

    ``fence`` is the fence number of a stream's lease. They cannot replay: that is for those to add who start Spark.
    """
    leader = workspace.ledger.find_stream(plan.stream)
    whole = workspace.home.operation(leader.pipeline, leader.name, plan.id)
    found = []
    for one in plan.members:
        stream = workspace.ledger.find_stream(one.stream)
        history = history_of(workspace.ledger, stream)
        operation = Operation(
            plan=one,
            stream=replace(stream, id=stream_id(workspace.home, stream)),
            home=workspace.home,
            ledger=workspace.ledger,
            journal=Journal(workspace.home.operation(stream.pipeline, stream.name, one.id)),
            output=open_output(stream.sink),
            history=history,
            facts=_facts(workspace, stream, one, history),
            open_replayer=_no_replayer,
            progress=progress,
            epoch=fence(stream.full_name),
            whole=whole,
        )
        found.append(operation)
    return tuple(found)


def _no_replayer() -> Replayer:
    raise EnvironmentMissing("replayer-unneeded", "Taking an operation back replays nothing")


def _facts(
    workspace: Workspace, stream: StreamRecord, plan: Plan, history: History
) -> Mapping[PreconditionName, Callable[[], str]]:
    """How the fact of each precondition is looked up."""
    ledger, batches = workspace.ledger, BatchHistory(history)
    facts, target = plan.facts, plan.facts.target
    cut = next((action.cut for action in plan.actions if isinstance(action, CutSink)), None)
    aside = next((action.output for action in plan.actions if isinstance(action, RunAside)), None)
    swapped = any(isinstance(action, SwapOutput) for action in plan.actions)
    context = SnapshotContext(ledger, workspace.home, own_lease=True)

    def readers() -> list[str]:
        output = open_output(stream.sink)
        taken = output.whole(history.written) if swapped and isinstance(output, Swappable) else cut
        return readers_of(ledger, stream, taken) if taken is not None else []

    def started_ms() -> int:
        # The clock of the files, not that of the ledger's server.
        return modified_ms(workspace.home.operation(stream.pipeline, stream.name, plan.id) / PLAN_FILE)

    def current() -> StreamRecord:
        return ledger.find_stream(stream.full_name)

    return {
        "generation": lambda: str(current().current_generation),
        "planned": lambda: str(read_snapshot(context, current()).marks.planned),
        "committed": lambda: str(read_snapshot(context, current()).marks.committed),
        "written": lambda: written_text(read_snapshot(context, current())),
        "history": lambda: batches.digest(batches_used(facts.contributing, target, facts.pending)),
        "pipeline": lambda: digest(plan.pipeline_file),
        "readers": lambda: listed(readers()),
        "side-output": lambda: listed(found_in(aside) if aside is not None else ()),
        "writer": lambda: written_since(workspace, current(), started_ms()),
        "source-files": lambda: listed(
            batches.missing_for(facts.contributing, target, StoreReach(), plan.request.ranges)
        ),
    }
