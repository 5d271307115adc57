"""Makes the plan for a goal, and plans for later stages that have read removed rows.

Nothing is changed but the ledger's copies.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter

from slackwater.core.errors import EnvironmentMissing, Refused, UsageError
from slackwater.core.program import QueryProfile
from slackwater.core.records import History, StreamRecord, member_id
from slackwater.core.sink import Cut, OutputTreatment, Swap
from slackwater.ledger.lease import JVM_WAIT_S, wait_until_free
from slackwater.ledger.recording.batch_history import BatchHistory, offsets_by_source
from slackwater.ledger.recording.history import history_of, output_of, read_of, readers_of
from slackwater.ledger.workspace import Workspace, find_stream
from slackwater.operations.actions.generations import query_in
from slackwater.operations.apply.executor import check_restorable
from slackwater.operations.apply.operation import QueryRuntime
from slackwater.operations.check_home import check_home
from slackwater.operations.gather import update_ledger
from slackwater.operations.goals.goal import goal_named
from slackwater.operations.plan.context import StreamFacts
from slackwater.operations.plan.document import HOW_TO_PLAN, at_batch, plan_command
from slackwater.operations.plan.plan import BATCH, BEFORE_ALL, EARLIEST, Plan, Request, change_of
from slackwater.operations.planner import Changed, Planner
from slackwater.sinks.common.contract import of_query
from slackwater.sinks.common.registry import open_output


def make_plan(
    workspace: Workspace, name: str, request: Request, runtime: QueryRuntime, say: Callable[[str], None]
) -> Plan:
    """Raises Refused if no exact and safe way exists, NotFound for an unknown stream."""
    check_home(workspace, say)
    stream, goal = find_stream(workspace.ledger, name), goal_named(request.goal)
    # The JVM of a killed driver can still commit a batch, after which the plan would be outdated.
    wait_until_free(workspace.ledger, stream.full_name, wait_s=JVM_WAIT_S, say=say)
    request = replace(request, pipeline_named=bool(request.pipeline_file), session=request.session or stream.session)
    stream = stream._replace(session=request.session)
    made_at = datetime.now(UTC)
    identifier = f"{made_at:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    upgraded = request.pipeline_file or stream.pipeline_file

    def read_query(one: StreamRecord, target: int | None) -> QueryProfile | None:
        reference = upgraded if one.pipeline == stream.pipeline else one.pipeline_file
        try:
            runtime.require_spark()
        except EnvironmentMissing as error:
            say(f"the changed query cannot be compared with the one that ran ({error.message}): all batches count")
            return None
        with runtime.open_replayer(workspace, one, reference, lambda _: None) as replayer:
            say("the pipeline's code has changed since these batches ran: reading the query's plan")
            check_restorable(workspace.ledger, one, target, replayer.program(), reference)
            return replayer.profile()

    planner = Planner(
        workspace, runtime, read_query, identity=identifier, made_at=made_at.isoformat(timespec="seconds"), say=say
    )
    facts = planner.facts(stream, request.pipeline_file, request.goal)
    changed = planner.refuse_without_session(facts, request)
    return derive_all(planner, facts, goal.complete(request, planner, facts), changed)


def derive_all(planner: Planner, facts: StreamFacts, request: Request, changed: Changed | None = None) -> Plan:
    """Raises as ``Planner.derive``, for any stage."""
    stream = facts.stream
    if request.ranges != "recorded":
        raise UsageError(
            "plan-damaged",
            "The plan was changed or damaged: its request is one of a later stage",
            where=f"stream {stream.full_name}",
            hint=f"nothing was changed; plan again: {HOW_TO_PLAN}",
        )
    request = replace(request, pipeline_file=stream.pipeline_file)
    derived = planner.derive(facts, request, planner.identity, changed=changed)
    if not request.downstream or not derived.actions:
        return derived
    return _with_later(planner, request, derived, facts)


def _with_later(planner: Planner, request: Request, derived: Plan, facts: StreamFacts) -> Plan:
    ledger, first = planner.workspace.ledger, facts.stream
    changes = [(first, _change(derived, facts))]
    plans: list[Plan] = []
    untouched: list[str] = []
    for stage in _later(planner, first):
        found = list[int]()
        for earlier, change in changes:
            read = read_of(ledger, earlier, change, stage.full_name)
            if read is None:
                continue
            if not read and change.after > BEFORE_ALL:
                swap = plan_command(first.full_name, goal_named(request.goal).swapped(request, changes[0][1].after))
                raise Refused(
                    "cut-was-read-by-version",
                    f"Stream {stage.full_name} reads the versions of a table: after a cut it would read again what "
                    "earlier versions have added",
                    where=open_output(earlier.sink).location,
                    expected="an output that is replaced as a whole",
                    found=f"a cut back to batch {change.after}",
                    hint=f"build new output in staging: {swap}",
                )
            found.append(first_batch(history_of(ledger, stage), read) if read else 0)
        batch = min(found, default=None)
        if batch is None:
            untouched.append(stage.full_name)
            continue
        pipeline_file = first.pipeline_file if stage.pipeline == first.pipeline else ""
        later = planner.facts(stage, pipeline_file, request.goal)
        treatment: OutputTreatment = "cut"
        goal, target = "rebuild", at_batch(batch - 1)
        # A rebuild removes nothing, if the batch is not in the sink.
        if batch <= later.snapshot.written_or_committed:
            goal, target = "replay", f"{BATCH}{batch}" if batch > 0 else EARLIEST
            treatment = "swap" if request.output == "swap" else "cut"
        asked = replace(
            Request.at(goal, target, output=treatment, downstream=True, ranges="new"),
            pipeline_file=later.stream.pipeline_file,
            pipeline_named=request.pipeline_named and pipeline_file != "",
            # What was said of the order of rows is said of all queries of the plan.
            row_order=request.row_order,
            session=request.session,
        )
        identifier = member_id(planner.identity, len(plans) + 2)
        plans.append(planner.derive(later, asked, identifier, leader=(first.full_name, request)))
        changes.append((stage, _change(plans[-1], later)))
    known = derived.facts
    notes = (*known.notes, *(f"{name} has read nothing that is changed: nothing to do" for name in untouched))
    return replace(derived, facts=replace(known, notes=notes), downstream=tuple(plans))


def _change(plan: Plan, facts: StreamFacts) -> Cut:
    change = change_of(plan.actions)
    if isinstance(change, Swap):
        return of_query(open_output(facts.stream.sink), query_in(plan)).whole(facts.history.written)
    return change or Cut(plan.facts.target, ())


def _later(planner: Planner, stream: StreamRecord) -> list[StreamRecord]:
    ledger = planner.workspace.ledger
    # Readers are found by the copies of their logs in the ledger.
    update_ledger(planner.workspace, ledger.streams(), planner.updated)
    earlier: dict[str, set[str]] = {stream.full_name: set()}
    pending = [stream]
    while pending:
        one = pending.pop()
        output, written, readers = output_of(ledger, one), history_of(ledger, one).written, list[str]()
        if output.traits.swaps:
            readers = readers_of(ledger, one, output.whole(written))
        elif output.traits.cuts:
            readers = readers_of(ledger, one, output.cut_after(BEFORE_ALL, written))
        for reader in readers:
            if reader not in earlier:
                pending.append(ledger.find_stream(reader))
            earlier.setdefault(reader, set()).add(one.full_name)
    try:
        ordered = [*TopologicalSorter({name: sorted(earlier[name]) for name in sorted(earlier)}).static_order()]
    except CycleError as error:
        raise Refused(
            "downstream-cycle",
            "The streams read each other's outputs in a cycle: no order is exact",
            found=" -> ".join(error.args[1]),
            hint="give one of them a new name and a new output",
        ) from error
    return [ledger.find_stream(name) for name in ordered if name != stream.full_name]


def first_batch(history: History, read: Mapping[str, int]) -> int:
    """The first batch that has read these log entries, else the next batch."""
    batches = BatchHistory(history)
    for batch in batches.batches:
        ends = offsets_by_source(batches.offset(batch))
        for source, entry in read.items():
            last = batches.kind(source, ends.get(source)).cut_entry(ends.get(source))
            if last is not None and last >= entry:
                return batch
    return max(batches.batches, default=BEFORE_ALL) + 1
