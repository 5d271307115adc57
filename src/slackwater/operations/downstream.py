"""Plans a stream with the later stages that have read its removed rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from slackwater.core.errors import Refused, UsageError
from slackwater.core.records import History, StreamRecord, member_id
from slackwater.core.sink import Cut, OutputTreatment, Swap
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.batch_history import BatchHistory, offsets_by_source
from slackwater.ledger.recording.history import history_of, output_of, read_of, readers_of
from slackwater.operations.actions.common.base import query_in
from slackwater.operations.gather import update_ledger
from slackwater.operations.goals.common.goal import goal_named
from slackwater.operations.plan.document import HOW_TO_PLAN
from slackwater.operations.plan.plan import BATCH, BEFORE_ALL, EARLIEST, Plan, Request
from slackwater.operations.plan.stream_facts import StreamFacts
from slackwater.operations.plan.words import at_batch, plan_command
from slackwater.operations.planner import PlannedStream, Planning, derive
from slackwater.sinks.common.contract import of_query
from slackwater.sinks.common.registry import open_output


def derive_all(planning: Planning, facts: StreamFacts, request: Request) -> Plan:
    """Raises as ``derive``, for any stage."""
    stream = facts.stream
    if request.ranges != "recorded":
        raise UsageError(
            "plan-damaged",
            "The plan was changed or damaged: its request is one of a later stage",
            where=f"stream {stream.full_name}",
            hint=f"nothing was changed; plan again: {HOW_TO_PLAN}",
        )
    request = replace(request, pipeline_file=stream.pipeline_file)
    derived = derive(planning, facts, request, planning.identity)
    if not request.downstream or not derived.plan.actions:
        return derived.plan
    return _Stages(planning, request).with_later(stream, derived)


class _Stages:
    def __init__(self, planning: Planning, request: Request) -> None:
        self._planning = planning
        self._ledger = planning.workspace.ledger
        self._request = request
        self._changes: list[tuple[StreamRecord, Cut]] = []

    def with_later(self, stream: StreamRecord, derived: PlannedStream) -> Plan:
        self._changes.append((stream, _change(derived)))
        plans: list[Plan] = []
        untouched: list[str] = []
        for stage in _later(self._planning, stream):
            batch = self._first_batch(stage)
            if batch is None:
                untouched.append(stage.full_name)
                continue
            planned = self._derive(stage, stream, batch, member_id(self._planning.identity, len(plans) + 2))
            self._changes.append((stage, _change(planned)))
            plans.append(planned.plan)
        facts = derived.plan.facts
        notes = (*facts.notes, *(f"{name} has read nothing that is changed: nothing to do" for name in untouched))
        return replace(derived.plan, facts=replace(facts, notes=notes), downstream=tuple(plans))

    def _first_batch(self, stage: StreamRecord) -> int | None:
        ledger, found = self._ledger, list[int]()
        for earlier, change in self._changes:
            read = read_of(ledger, earlier, change, stage.full_name)
            if read is None:
                continue
            if read.by_version and change.after > BEFORE_ALL:
                raise self._by_version(stage, earlier, change)
            found.append(0 if read.by_version else first_batch(history_of(ledger, stage), read.entries))
        return min(found, default=None)

    def _derive(self, stage: StreamRecord, first: StreamRecord, batch: int, identifier: str) -> PlannedStream:
        treatment: OutputTreatment = "swap" if self._request.output == "swap" else "cut"
        pipeline_file = first.pipeline_file if stage.pipeline == first.pipeline else ""
        facts = self._planning.facts(stage, pipeline_file, self._request.goal)
        request = request_from(batch, facts.snapshot.written_or_committed, treatment)
        named = self._request.pipeline_named and pipeline_file != ""
        # What was said of the order of rows is said of all queries of the plan.
        order, file = self._request.row_order, facts.stream.pipeline_file
        request = replace(
            request, pipeline_file=file, pipeline_named=named, row_order=order, session=self._request.session
        )
        planning = replace(self._planning, leader=(first.full_name, self._request))
        return derive(planning, facts, request, identifier)

    def _by_version(self, stage: StreamRecord, earlier: StreamRecord, change: Cut) -> Refused:
        first, changed = self._changes[0]
        request = goal_named(self._request.goal).swapped(self._request, changed.after)
        return Refused(
            "cut-was-read-by-version",
            f"Stream {stage.full_name} reads the versions of a table: after a cut it would read again what earlier "
            "versions have added",
            where=open_output(earlier.sink).location,
            expected="an output that is replaced as a whole",
            found=f"a cut back to batch {change.after}",
            hint=f"build new output in staging: {plan_command(first.full_name, request)}",
        )


def _change(derived: PlannedStream) -> Cut:
    for action in derived.plan.actions:
        if isinstance(action.change, Cut):
            return action.change
        if isinstance(action.change, Swap):
            output = of_query(open_output(derived.facts.stream.sink), query_in(derived.plan))
            return output.whole(derived.facts.history.written)
    return Cut(derived.plan.facts.target, ())


def _later(planning: Planning, stream: StreamRecord) -> Iterator[StreamRecord]:
    ledger = planning.workspace.ledger
    # Readers are found by the copies of their logs in the ledger.
    update_ledger(planning.workspace, ledger.streams(), planning.updated)
    earlier: dict[str, set[str]] = {stream.full_name: set()}
    pending = [stream]
    while pending:
        one = pending.pop()
        for reader in _readers(ledger, one):
            if reader not in earlier:
                pending.append(ledger.find_stream(reader))
            earlier.setdefault(reader, set()).add(one.full_name)
    return iter([ledger.find_stream(name) for name in _in_order(earlier) if name != stream.full_name])


def _readers(ledger: Ledger, stream: StreamRecord) -> list[str]:
    output, written = output_of(ledger, stream), history_of(ledger, stream).written
    if output.traits.swaps:
        return readers_of(ledger, stream, output.whole(written))
    return readers_of(ledger, stream, output.cut_after(BEFORE_ALL, written)) if output.traits.cuts else []


def _in_order(earlier: Mapping[str, set[str]]) -> list[str]:
    try:
        return list(TopologicalSorter({name: sorted(earlier[name]) for name in sorted(earlier)}).static_order())
    except CycleError as error:
        raise Refused(
            "downstream-cycle",
            "The streams read each other's outputs in a circle: no order of them is exact",
            found=" -> ".join(error.args[1]),
            hint="give one of them a new name and a new output",
        ) from error


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


def request_from(batch: int, written: int, output: OutputTreatment) -> Request:
    """A replay, or a rebuild, which removes nothing, if no batch is in the sink (``written`` is its newest)."""
    if batch <= written:
        return _request("replay", f"{BATCH}{batch}" if batch > 0 else EARLIEST, output)
    return _request("rebuild", at_batch(batch - 1), "cut")


def _request(goal: str, target: str, output: OutputTreatment) -> Request:
    return Request.at(goal, target, output=output, downstream=True, ranges="new")
