"""Assembles a plan: the actions for a scope, their preconditions, their cost and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from slackwater.diagnose.number_line import findings
from slackwater.model.actions import (
    Action,
    Base,
    BuildGeneration,
    CopyGeneration,
    CutSink,
    PlanBatch,
    ReplayBatches,
    ReplaySettings,
    RunAside,
    RunBackfill,
    RunStaged,
    SkipBatch,
    SourceStart,
    StageOutput,
    StartGeneration,
    SwapOutput,
    SwitchGeneration,
    VerifyGeneration,
)
from slackwater.model.history import History
from slackwater.model.plan import Cost, Facts, Plan, Precondition, PreconditionName
from slackwater.model.sink import Cut, SideOutput, Swap
from slackwater.plan.adopted import SETTINGS_UNKNOWN, notes_of_adopted
from slackwater.plan.basis import BEFORE_ALL, Basis, Scope, batches_used, query_id, written_text
from slackwater.plan.batch_history import BatchHistory
from slackwater.plan.contributing import StateBounds
from slackwater.plan.inverse import undo_of
from slackwater.plan.notes import (
    notes_of,
    notes_of_aside,
    notes_of_backfill,
    notes_of_start,
    risks_of,
    risks_of_aside,
    risks_of_backfill,
    summaries_of,
)
from slackwater.plan.words import at_batch


def plan_of(basis: Basis, scope: Scope, change: Cut | Swap, identifier: str, made_at: str) -> Plan:
    """The plan. ``change`` is what the sink loses after the target batch, or what replaces it."""
    cut = change if isinstance(change, Cut) else Cut(scope.target, ())
    return _plan(basis, scope, _actions(basis, scope, change), cut, (identifier, made_at))


def plan_of_nothing(basis: Basis, identifier: str, made_at: str) -> Plan:
    """The plan for a stream that can be started as it is: it has no actions."""
    marks = basis.snapshot.marks
    following = marks.next_batch
    pending = following if marks.next_is_planned else None
    scope = Scope(following - 1, following, pending, StateBounds(basis.snapshot.stateful, None, None), copied=True)
    plan = _plan(basis, scope, (), Cut(following - 1, ()), (identifier, made_at))
    notes: tuple[str, ...] = (f"nothing to do: {findings(basis.snapshot)[0].text}",)
    if basis.goal == "backfill":
        notes = ("nothing to do: the range has nothing that no batch has read", *summaries_of(basis.request.starts))
    return replace(plan, facts=replace(plan.facts, notes=notes))


def _plan(basis: Basis, scope: Scope, actions: tuple[Action, ...], cut: Cut, identity: tuple[str, str]) -> Plan:
    snapshot, target = basis.snapshot, scope.target
    risks = _risks(basis, scope)
    facts = _facts(basis, scope)
    if basis.adopted is not None:
        risks = risks if scope.copied or scope.first > scope.target else (*risks, SETTINGS_UNKNOWN)
        facts = replace(facts, notes=(*facts.notes, *notes_of_adopted(basis.adopted, identity[0])))
    return Plan(
        id=identity[0],
        goal=basis.goal,
        stream=snapshot.stream.full_name,
        pipeline_file=snapshot.stream.pipeline_file,
        made_at=identity[1],
        request=basis.request,
        target=basis.request.target if scope.starts is not None else at_batch(target),
        facts=facts,
        preconditions=_preconditions(basis, scope, actions),
        actions=actions,
        cost=_cost(basis.history, scope, cut),
        risks=risks if actions else (),
        undo=undo_of(actions),
        downstream=(),
    )


def _risks(basis: Basis, scope: Scope) -> tuple[str, ...]:
    if basis.side is not None:
        return risks_of_aside(basis.environment)
    if basis.goal == "backfill":
        return risks_of_backfill(basis.snapshot, basis.environment, scope.target)
    return risks_of(
        basis.snapshot,
        basis.query,
        () if scope.copied else basis.environment,
        following=scope.target + 1,
        pending=scope.pending,
        kept=scope.keeps_pending,
    )


def _actions(basis: Basis, scope: Scope, change: Cut | Swap) -> tuple[Action, ...]:
    if basis.side is not None:
        return _actions_aside(basis, scope.target, basis.side)
    if basis.goal == "backfill":
        return _actions_of_backfill(basis, scope.target)
    first, target, number = scope.first, scope.target, basis.number
    actions: list[Action] = [_base(basis, scope)]
    if first <= target:
        actions.append(ReplayBatches(number, first, target, _settings(basis.batches, first, target)))
    if scope.pending is not None:
        actions.append(PlanBatch(number, scope.pending))
    actions.append(VerifyGeneration(number, first, target, scope.pending, scope.state_until))
    if isinstance(change, Swap):
        actions += [StageOutput(target), RunStaged(number), SwapOutput(change)]
    elif change.batches:
        actions.append(CutSink(change))
    actions.append(SwitchGeneration(basis.snapshot.generation.number, number))
    return tuple(actions)


def _actions_of_backfill(basis: Basis, batch: int) -> tuple[Action, ...]:
    """Two checkpoints are verified before the output is changed: one to run the batch, one to continue behind it."""
    before, aside, following = batch - 1, basis.number, basis.number + 1
    identifier, old = query_id(basis, before), basis.snapshot.generation.number
    return (
        StartGeneration(aside, identifier, before, basis.request.starts),
        VerifyGeneration(aside, batch, before, None, None),
        CopyGeneration(following, old, identifier, before, None, None),
        SkipBatch(following, batch),
        VerifyGeneration(following, batch + 1, batch, None, None),
        RunBackfill(aside, batch, basis.request.ends),
        SwitchGeneration(old, following),
    )


def _actions_aside(basis: Basis, last: int, side: SideOutput) -> tuple[Action, ...]:
    """The checkpoint is one of its own, whose first batch is the range: the stream stays after batch ``last``."""
    aside = basis.number
    return (
        StartGeneration(aside, query_id(basis, last), BEFORE_ALL, basis.request.starts),
        VerifyGeneration(aside, 0, BEFORE_ALL, None, None),
        RunAside(aside, basis.request.ends, side),
    )


def _base(basis: Basis, scope: Scope) -> Base:
    target, number, identifier = scope.target, basis.number, query_id(basis, scope.target)
    if scope.starts is not None:
        return StartGeneration(number, identifier, target, scope.starts)
    if not scope.copied:
        return BuildGeneration(number, identifier, scope.first, target, scope.pending)
    source = basis.snapshot.generation.number
    return CopyGeneration(number, source, identifier, target, scope.pending, scope.state_until)


def _settings(batches: BatchHistory, first: int, target: int) -> tuple[ReplaySettings, ...]:
    """The batches in groups that ran under the same settings."""
    groups = groupby(range(first, target + 1), batches.settings)
    spans = [(settings, list(group)) for settings, group in groups]
    return tuple(
        ReplaySettings(group[0], group[-1], None if settings is None else dict(settings)) for settings, group in spans
    )


def _settings_of_note(batches: BatchHistory, scope: Scope) -> tuple[ReplaySettings, ...]:
    """The same without what Spark applies by itself, as the batches pin it."""
    return tuple(
        ReplaySettings(
            group.first,
            group.last,
            {key: value for key, value in (group.settings or {}).items() if key not in batches.pinned(group.first)},
        )
        for group in _settings(batches, scope.first, scope.target)
    )


def _facts(basis: Basis, scope: Scope) -> Facts:
    snapshot, target = basis.snapshot, scope.target
    marks = snapshot.marks
    return Facts(
        planned=marks.planned,
        committed=marks.committed,
        state=marks.state,
        written=marks.written,
        target=target,
        contributing=scope.first,
        pending=scope.pending,
        watermark_ms=_watermark_ms(basis, target),
        retention_ms=scope.state.retention_ms,
        delay_ms=scope.state.delay_ms,
        checkpoint_present=snapshot.checkpoint_present,
        ranges_from="checkpoint" if snapshot.checkpoint_present else "ledger",
        notes=_notes_of_positions(basis, scope.starts, target)
        if scope.starts is not None
        else notes_of(
            snapshot,
            basis.goal,
            target=target,
            asked=basis.target,
            first=scope.first,
            pending=scope.pending,
            state=scope.state,
            copied_from=snapshot.generation.number if scope.copied else None,
            code_differs=_code_differs(basis, scope),
            settings=_settings_of_note(basis.batches, scope),
        ),
        adopted=basis.adopted,
    )


def _watermark_ms(basis: Basis, target: int) -> int:
    """That of the newest recorded batch up to the target: the batch of a backfill changes none. 0: none yet."""
    before = basis.snapshot.marks.committed if basis.goal == "backfill" else target
    return basis.batches.offset(before).watermark_ms if before in basis.history.offsets else 0


def _notes_of_positions(basis: Basis, starts: Sequence[SourceStart], target: int) -> tuple[str, ...]:
    if basis.side is not None:
        return notes_of_aside(starts, target, basis.side)
    if basis.goal == "backfill":
        return notes_of_backfill(starts, target)
    return notes_of_start(starts, target, basis.request.output)


def _code_differs(basis: Basis, scope: Scope) -> bool:
    """Whether some batch that might contribute ran with code that, as far as is known, reads other rows."""
    runs = basis.history.runs
    return scope.state.stateful and not all(basis.code.reads_as(runs.get(batch)) for batch in range(scope.target + 1))


def listed(names: Sequence[str]) -> str:
    """Names as a precondition compares them."""
    return ", ".join(names) or "none"


def _preconditions(basis: Basis, scope: Scope, actions: tuple[Action, ...]) -> tuple[Precondition, ...]:
    marks = basis.snapshot.marks
    expected: dict[PreconditionName, str] = {
        "generation": str(basis.snapshot.generation.number),
        "planned": str(marks.planned),
        "committed": str(marks.committed),
        "written": written_text(basis.snapshot),
        "history": basis.batches.digest(batches_used(scope.first, scope.target, scope.pending)),
        "pipeline": basis.code.digest,
        "source-files": listed(()),
        "readers": listed(basis.readers),
        "writer": listed(()),
        "side-output": listed(()),
    }
    needed: dict[str, tuple[PreconditionName, ...]] = {
        "build-generation": (
            "generation", "planned", "committed", "written", "history", "pipeline", "source-files",
        ),
        "start-generation": ("generation", "planned", "committed", "written", "pipeline"),
        "copy-generation": ("generation", "planned", "committed", "written", "history", "source-files"),
        "run-backfill": ("generation", "planned", "committed", "written"),
        "run-aside": ("side-output",),
        "cut-sink": ("written", "readers"),
        "stage-output": ("written", "readers"),
        "swap-output": ("written",),
        "switch-generation": ("generation",),
    }  # fmt: skip
    if basis.adopted is not None:
        # No lease keeps the user's program from starting the query meanwhile.
        for kind in ("cut-sink", "switch-generation"):
            needed[kind] += ("planned", "committed", "writer")
    return tuple(
        Precondition(index, name, expected[name])
        for index, action in enumerate(actions)
        for name in needed.get(action.kind, ())
    )


def _cost(history: History, scope: Scope, cut: Cut) -> Cost:
    replayed, recorded = range(scope.first, scope.target + 1), range(scope.target + 1)
    return Cost(
        batches_replayed=len(replayed),
        rows_read_again=_rows(history, replayed),
        batches_uncounted=sum(batch not in history.input_rows for batch in replayed),
        rows_recorded=_rows(history, recorded),
        batches_cut=len(cut.batches),
        files_cut=sum(len(one.files) for one in (cut, *cut.members)),
        bytes_cut=sum(one.bytes for one in (cut, *cut.members)),
    )


def _rows(history: History, batches: range) -> int:
    return sum(history.input_rows.get(batch, 0) for batch in batches)
