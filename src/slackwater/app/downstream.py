"""Derives a plan together with those of the later stages, which have read what it takes out of the output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from slackwater.app.deriving import Asked, Derived, QueryReader, derive, reconcile
from slackwater.app.workspace import Workspace
from slackwater.errors import Refused, UsageError
from slackwater.model.actions import CutSink, SwapOutput
from slackwater.model.plan import OutputTreatment, Plan
from slackwater.model.records import StreamRecord, member_id
from slackwater.model.sink import Cut
from slackwater.plan.basis import BEFORE_ALL
from slackwater.plan.document import HOW_TO_PLAN
from slackwater.plan.downstream import first_batch, request_from
from slackwater.plan.words import BATCH, plan_command
from slackwater.recording.history import history_of, read_of, readers_of
from slackwater.recording.snapshot import SnapshotContext, read_snapshot
from slackwater.sinks.contract import Swappable
from slackwater.sinks.registry import open_output

QueryReaders = Callable[[StreamRecord], QueryReader]
"""The reader of each stream's present query."""


def derive_all(
    workspace: Workspace,
    stream: StreamRecord,
    asked: Asked,
    readers: QueryReaders,
    *,
    identity: tuple[str, str],
    own_lease: bool = False,
) -> Plan:
    """The plan for a stream as it is now, and for the later stages if these were asked for.

    Raises as ``derive`` does, for any of them; nothing is changed then.
    """
    if asked.request.ranges != "recorded":
        raise UsageError(
            "plan-damaged",
            "The plan was changed or damaged: its request is one of a later stage",
            where=f"stream {stream.full_name}",
            hint=f"nothing was changed; plan again: {HOW_TO_PLAN}",
        )
    derived = derive(workspace, stream, asked, readers(stream), identity=identity, own_lease=own_lease)
    if not asked.request.downstream or not derived.plan.actions:
        return derived.plan
    stages = _Stages(workspace, asked, readers, identity, own_lease=own_lease)
    return stages.with_later(stream, derived)


class _Stages:
    """The later stages of one plan."""

    def __init__(
        self, workspace: Workspace, asked: Asked, readers: QueryReaders, identity: tuple[str, str], *, own_lease: bool
    ) -> None:
        self._workspace = workspace
        self._asked = asked
        self._query_readers = readers
        self._identity = identity
        self._own_lease = own_lease
        self._changes: list[tuple[StreamRecord, Cut]] = []

    def with_later(self, stream: StreamRecord, derived: Derived) -> Plan:
        """The plan of the first stream with those of all that have read what is changed."""
        self._changes.append((stream, _change(derived)))
        plans: list[Plan] = []
        untouched: list[str] = []
        for stage in _later(self._workspace, stream):
            batch = self._first_batch(stage)
            if batch is None:
                untouched.append(stage.full_name)
                continue
            planned = self._derive(stage, stream, batch, member_id(self._identity[0], len(plans) + 2))
            self._changes.append((stage, _change(planned)))
            plans.append(planned.plan)
        facts = derived.plan.facts
        notes = (*facts.notes, *(f"{name} has read nothing that is changed: nothing to do" for name in untouched))
        return replace(derived.plan, facts=replace(facts, notes=notes), downstream=tuple(plans))

    def _first_batch(self, stage: StreamRecord) -> int | None:
        """The first batch of a stage that has read something that is changed, ``None`` for none."""
        ledger, found = self._workspace.ledger, []
        for earlier, change in self._changes:
            read = read_of(ledger, earlier, change, stage.full_name)
            if read is None:
                continue
            if read.by_version and change.after > BEFORE_ALL:
                raise self._by_version(stage, earlier, change)
            found.append(0 if read.by_version else first_batch(history_of(ledger, stage), read.entries))
        return min(found, default=None)

    def _derive(self, stage: StreamRecord, first: StreamRecord, batch: int, identifier: str) -> Derived:
        context = SnapshotContext(self._workspace.ledger, self._workspace.home, own_lease=self._own_lease)
        written = read_snapshot(context, stage).written_or_committed
        treatment: OutputTreatment = "swap" if self._asked.request.output == "swap" else "cut"
        goal, request = request_from(batch, written, treatment)
        upgraded = self._asked.pipeline_file or first.pipeline_file
        pipeline_file = upgraded if stage.pipeline == first.pipeline else None
        return derive(
            self._workspace,
            stage,
            Asked(goal, request, pipeline_file),
            self._query_readers(stage),
            identity=(identifier, self._identity[1]),
            own_lease=self._own_lease,
        )

    def _by_version(self, stage: StreamRecord, earlier: StreamRecord, change: Cut) -> Refused:
        (first, changed), request = self._changes[0], replace(self._asked.request, output="swap", retention_ms=None)
        goal = self._asked.goal
        if goal != "reset":
            goal, request = "replay", replace(request, target=f"{BATCH}{changed.after + 1}")
        return Refused(
            "cut-was-read-by-version",
            f"Stream {stage.full_name} reads the versions of a table: after a cut it would read again what earlier "
            "versions have added",
            where=open_output(earlier.sink).location,
            expected="an output that is replaced as a whole",
            found=f"a cut back to batch {change.after}",
            hint=f"build new output aside: {plan_command(goal, first.full_name, request)}",
        )


def _change(derived: Derived) -> Cut:
    """What readers of the output have to read again: what is cut, or everything."""
    for action in derived.plan.actions:
        if isinstance(action, CutSink):
            return action.cut
        output = open_output(derived.snapshot.stream.sink)
        if isinstance(action, SwapOutput) and isinstance(output, Swappable):
            return output.whole(derived.history.written)
    return Cut(derived.plan.facts.target, ())


def _later(workspace: Workspace, stream: StreamRecord) -> Iterator[StreamRecord]:
    """All streams that have read the stream's output, or that of one of these; each after those that it has read."""
    ledger = workspace.ledger
    for other in ledger.streams():
        reconcile(workspace, other)
    earlier: dict[str, set[str]] = {stream.full_name: set()}
    pending = [stream]
    while pending:
        one = pending.pop()
        for reader in _readers(workspace, one):
            if reader not in earlier:
                pending.append(ledger.find_stream(reader))
            earlier.setdefault(reader, set()).add(one.full_name)
    return iter([ledger.find_stream(name) for name in _in_order(earlier) if name != stream.full_name])


def _readers(workspace: Workspace, stream: StreamRecord) -> list[str]:
    output, written = open_output(stream.sink), history_of(workspace.ledger, stream).written
    if isinstance(output, Swappable) and output.traits.swaps:
        return readers_of(workspace.ledger, stream, output.whole(written))
    return readers_of(workspace.ledger, stream, output.cut_after(BEFORE_ALL, written)) if output.traits.cuts else []


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
