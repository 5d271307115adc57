from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from slackwater.core.sink import BackfillDirectory, Cut, Swap
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.operations.action import Action, Precondition, PreconditionName
from slackwater.operations.actions.build_generation import BuildGeneration
from slackwater.operations.actions.common.base import Base
from slackwater.operations.actions.copy_generation import CopyGeneration
from slackwater.operations.actions.cut_sink import CutSink
from slackwater.operations.actions.plan_batch import PlanBatch
from slackwater.operations.actions.replay_batches import ReplayBatches, ReplaySettings
from slackwater.operations.actions.run_backfill import RunBackfill
from slackwater.operations.actions.run_into_directory import RunIntoDirectory
from slackwater.operations.actions.run_staged import RunStaged
from slackwater.operations.actions.skip_batch import SkipBatch
from slackwater.operations.actions.stage_output import StageOutput
from slackwater.operations.actions.start_generation import StartGeneration
from slackwater.operations.actions.swap_output import SwapOutput
from slackwater.operations.actions.switch_generation import SwitchGeneration
from slackwater.operations.actions.verify_generation import VerifyGeneration
from slackwater.operations.goals.common.goal import goal_named
from slackwater.operations.plan.adopted import SETTINGS_UNKNOWN, notes_of_adopted
from slackwater.operations.plan.basis import Basis, Scope, batches_used, query_id, written_text
from slackwater.operations.plan.contributing import StateBounds
from slackwater.operations.plan.cost import cost_of
from slackwater.operations.plan.notes import (
    notes_of,
    notes_of_backfill,
    notes_of_directory,
    notes_of_start,
    risks_of,
    risks_of_backfill,
    risks_of_directory,
    risks_of_environment,
    risks_of_others,
    risks_of_unmarked,
)
from slackwater.operations.plan.plan import BEFORE_ALL, Facts, Plan, SourceStart, undo_of
from slackwater.operations.plan.words import at_batch


def plan_of(basis: Basis, scope: Scope, change: Cut | Swap, identifier: str, made_at: str) -> Plan:
    """``change``: the cut after the target batch, or the replacement of the output."""
    plan = _plan(basis, scope, tuple(_actions(basis, scope, change)), (identifier, made_at))
    risks = risks_of_unmarked(basis.snapshot) if plan.facts.keeps_unmarked else risks_of_others(basis.snapshot, change)
    return replace(plan, risks=(*plan.risks, *risks))


def plan_of_nothing(basis: Basis, identifier: str, made_at: str) -> Plan:
    marks = basis.snapshot.marks
    following = marks.next_batch
    pending = following if marks.next_is_planned else None
    scope = Scope(following - 1, following, pending, StateBounds(basis.snapshot.stateful, None, None), copied=True)
    plan = _plan(basis, scope, (), (identifier, made_at))
    return replace(plan, facts=replace(plan.facts, notes=goal_named(basis.goal).nothing_to_do(basis)))


def _plan(basis: Basis, scope: Scope, actions: tuple[Action, ...], identity: tuple[str, str]) -> Plan:
    snapshot, target = basis.snapshot, scope.target
    risks = _risks(basis, scope)
    facts = _facts(basis, scope)
    if basis.facts.adopted is not None:
        batches = () if scope.copied else range(scope.first, scope.target + 1)
        if any(basis.history.runs.get(batch) is None for batch in batches):
            risks = (*risks, SETTINGS_UNKNOWN)
        risks = (*risks, *dict.fromkeys(one.risk_adopted for one in actions if one.risk_adopted))
        if basis.side is None:
            facts = replace(facts, notes=(*facts.notes, *notes_of_adopted(basis.facts.adopted, identity[0])))
    return Plan(
        id=identity[0],
        stream=snapshot.stream.full_name,
        made_at=identity[1],
        request=basis.request,
        target=basis.request.target if scope.starts is not None else at_batch(target),
        facts=facts,
        preconditions=_preconditions(basis, scope, actions),
        actions=actions,
        cost=cost_of(basis, scope, actions),
        risks=risks if actions else (),
        undo=undo_of(actions),
        downstream=(),
    )


def _risks(basis: Basis, scope: Scope) -> tuple[str, ...]:
    if basis.side is not None:
        return risks_of_directory(basis.facts.pipeline.environment)
    if scope.added:
        return risks_of_backfill(basis.snapshot, basis.facts.pipeline.environment, scope.target)
    replays = scope.state.stateful and not scope.copied and scope.starts is None and scope.first <= scope.target
    risks = risks_of(
        basis.snapshot,
        basis.query,
        () if scope.copied else basis.facts.pipeline.environment,
        following=scope.target + 1,
        pending=scope.pending,
        kept=scope.keeps_pending,
        replays=replays,
    )
    return (*risks_of_environment(basis.facts.pipeline.changed), *risks) if replays else risks


def _actions(basis: Basis, scope: Scope, change: Cut | Swap) -> tuple[Action, ...]:
    if basis.side is not None:
        return _actions_into_directory(basis, scope.target, basis.side)
    if scope.added:
        return _actions_of_backfill(basis, scope.target)
    first, target, number = scope.first, scope.target, basis.facts.next_generation
    actions: list[Action] = [_base(basis, scope)]
    if first <= target:
        actions.append(ReplayBatches(number, first, target, _settings(basis.batches, first, target)))
    if scope.pending is not None:
        actions.append(PlanBatch(number, scope.pending))
    # Before the first action that changes what is in use.
    actions.append(VerifyGeneration(number, first, target, scope.pending, scope.state_until))
    if isinstance(change, Swap):
        actions += [StageOutput(target), RunStaged(number), SwapOutput(change)]
    elif change.batches:
        actions.append(CutSink(change))
    actions.append(SwitchGeneration(basis.snapshot.generation.number, number))
    return tuple(actions)


def _actions_of_backfill(basis: Basis, batch: int) -> tuple[Action, ...]:
    """The actions of a backfill: two checkpoints are verified before the output changes."""
    before, number, following = batch - 1, basis.facts.next_generation, basis.facts.next_generation + 1
    identifier, old = query_id(basis, before), basis.snapshot.generation.number
    return (
        StartGeneration(number, identifier, before, basis.request.starts),
        VerifyGeneration(number, batch, before, None, None),
        CopyGeneration(following, old, identifier, before, None, None),
        SkipBatch(following, batch),
        VerifyGeneration(following, batch + 1, batch, None, None),
        RunBackfill(number, batch, basis.request.ends),
        SwitchGeneration(old, following),
    )


def _actions_into_directory(basis: Basis, last: int, side: BackfillDirectory) -> tuple[Action, ...]:
    number = basis.facts.next_generation
    return (
        StartGeneration(number, query_id(basis, last), BEFORE_ALL, basis.request.starts),
        VerifyGeneration(number, 0, BEFORE_ALL, None, None),
        RunIntoDirectory(number, basis.request.ends, side),
    )


def _base(basis: Basis, scope: Scope) -> Base:
    target, number, identifier = scope.target, basis.facts.next_generation, query_id(basis, scope.target)
    if scope.starts is not None:
        return StartGeneration(number, identifier, target, scope.starts)
    if not scope.copied:
        return BuildGeneration(number, identifier, scope.first, target, scope.pending)
    source = basis.snapshot.generation.number
    return CopyGeneration(number, source, identifier, target, scope.pending, scope.state_until)


def _settings(batches: BatchHistory, first: int, target: int) -> tuple[ReplaySettings, ...]:
    groups = groupby(range(first, target + 1), batches.settings)
    spans = [(settings, list(group)) for settings, group in groups]
    return tuple(
        ReplaySettings(group[0], group[-1], None if settings is None else dict(settings)) for settings, group in spans
    )


def _settings_of_note(batches: BatchHistory, scope: Scope) -> tuple[ReplaySettings, ...]:
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
        watermark_ms=_watermark_ms(basis, scope),
        retention_ms=scope.state.retention_ms,
        delay_ms=scope.state.delay_ms,
        checkpoint_present=snapshot.checkpoint_present,
        ranges_from="checkpoint" if snapshot.checkpoint_present else "ledger",
        notes=_notes_of_positions(basis, scope, scope.starts)
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
        adopted=basis.facts.adopted,
        keeps_unmarked=snapshot.output.unmarked is not None and basis.request.output == "keep",
    )


def _watermark_ms(basis: Basis, scope: Scope) -> int:
    before = basis.snapshot.marks.committed if scope.added else scope.target
    return basis.batches.offset(before).watermark_ms if before in basis.history.offsets else 0


def _notes_of_positions(basis: Basis, scope: Scope, starts: Sequence[SourceStart]) -> tuple[str, ...]:
    if basis.side is not None:
        return notes_of_directory(starts, scope.target, basis.side)
    if scope.added:
        return notes_of_backfill(starts, scope.target)
    return notes_of_start(starts, scope.target, basis.request.output)


def _code_differs(basis: Basis, scope: Scope) -> bool:
    runs, code = basis.history.runs, basis.code
    return scope.state.stateful and not all(code.reads_as(runs.get(batch)) for batch in range(scope.target + 1))


def listed(names: Sequence[str]) -> str:
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
        "backfill-directory": listed(()),
        "others": next((one.change.seen for one in actions if one.change is not None), ""),
    }
    return tuple(
        Precondition(index, name, expected[name])
        for index, action in enumerate(actions)
        for name in (action.needs if basis.facts.adopted is None else (*action.needs, *action.needs_adopted))
    )
