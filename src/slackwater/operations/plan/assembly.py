from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from slackwater.core.sink import Cut, Swap
from slackwater.core.units import batch_range
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.operations.action import Action, Precondition, PreconditionName
from slackwater.operations.actions.batches import PlanBatch, ReplayBatches, ReplaySettings, RunStaged, SkipBatch
from slackwater.operations.actions.generations import BuildGeneration, CopyGeneration, StartGeneration
from slackwater.operations.actions.outputs import CutSink, RunBackfill, RunIntoDirectory, StageOutput, SwapOutput
from slackwater.operations.actions.switching import SwitchGeneration, VerifyGeneration
from slackwater.operations.goals.goal import goal_named
from slackwater.operations.plan.context import PlanContext, Scope, batches_used, query_id, written_text
from slackwater.operations.plan.contributing import StateBounds
from slackwater.operations.plan.cost import cost_of
from slackwater.operations.plan.document import at_batch
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
from slackwater.operations.plan.plan import BEFORE_ALL, Plan, PlannedFacts, change_of, undo_of


def plan_of(context: PlanContext, scope: Scope, change: Cut | Swap, identifier: str, made_at: str) -> Plan:
    """``change``: the cut after the target batch, or the replacement of the output."""
    plan = _plan(context, scope, tuple(_actions(context, scope, change)), (identifier, made_at))
    risks = (
        risks_of_unmarked(context.snapshot) if plan.facts.keeps_unmarked else risks_of_others(context.snapshot, change)
    )
    return replace(plan, risks=(*plan.risks, *risks))


def plan_of_nothing(context: PlanContext, identifier: str, made_at: str) -> Plan:
    marks = context.snapshot.marks
    following = marks.next_batch
    pending = following if marks.next_is_planned else None
    scope = Scope(following - 1, following, pending, StateBounds(context.snapshot.stateful, None, None), copied=True)
    plan = _plan(context, scope, (), (identifier, made_at))
    return replace(plan, facts=replace(plan.facts, notes=goal_named(context.goal).nothing_to_do(context)))


def _plan(context: PlanContext, scope: Scope, actions: tuple[Action, ...], identity: tuple[str, str]) -> Plan:
    snapshot, target = context.snapshot, scope.target
    path, facts = context.facts.path, _facts(context, scope)
    batches = () if scope.copied else range(scope.first, scope.target + 1)
    settings_known = all(context.history.runs.get(batch) is not None for batch in batches)
    risks = (*_risks(context, scope), *path.risks((one.kind for one in actions), settings_known=settings_known))
    if context.side is None:
        facts = replace(facts, notes=(*facts.notes, *path.notes(identity[0])))
    return Plan(
        id=identity[0],
        stream=snapshot.stream.full_name,
        made_at=identity[1],
        request=context.request,
        target=context.request.target if scope.starts is not None else at_batch(target),
        facts=facts,
        preconditions=_preconditions(context, scope, actions),
        actions=actions,
        cost=cost_of(context, scope, actions),
        risks=risks if actions else (),
        undo=undo_of(actions),
        downstream=(),
    )


def _risks(context: PlanContext, scope: Scope) -> tuple[str, ...]:
    if context.side is not None:
        return risks_of_directory(context.facts.environment)
    if scope.added:
        return risks_of_backfill(context.snapshot, context.facts.environment, scope.target)
    replays = scope.state.stateful and not scope.copied and scope.starts is None and scope.first <= scope.target
    risks = risks_of(
        context.snapshot,
        context.query,
        () if scope.copied else context.facts.environment,
        following=scope.target + 1,
        pending=scope.pending,
        kept=scope.keeps_pending,
        replays=replays,
    )
    return (*risks_of_environment(context.facts.environment_changed), *risks) if replays else risks


def _actions(context: PlanContext, scope: Scope, change: Cut | Swap) -> tuple[Action, ...]:
    first, target, number = scope.first, scope.target, context.facts.next_generation
    old, ends, starts = context.snapshot.generation.number, context.request.ends, context.request.starts
    if context.side is not None:
        return (
            StartGeneration(number, query_id(context, target), BEFORE_ALL, starts),
            VerifyGeneration(number, 0, BEFORE_ALL, None, None),
            RunIntoDirectory(number, ends, context.side),
        )
    if scope.added:
        before, following, identifier = target - 1, number + 1, query_id(context, target - 1)
        # Two checkpoints are verified before the output changes.
        return (
            StartGeneration(number, identifier, before, starts),
            VerifyGeneration(number, target, before, None, None),
            CopyGeneration(following, old, identifier, before, None, None),
            SkipBatch(following, target),
            VerifyGeneration(following, target + 1, target, None, None),
            RunBackfill(number, target, ends),
            SwitchGeneration(old, following),
        )
    identifier = query_id(context, target)
    actions: list[Action] = []
    if scope.starts is not None:
        actions.append(StartGeneration(number, identifier, target, scope.starts))
    elif scope.copied:
        actions.append(CopyGeneration(number, old, identifier, target, scope.pending, scope.state_until))
    else:
        actions.append(BuildGeneration(number, identifier, first, target, scope.pending))
    if first <= target:
        actions.append(ReplayBatches(number, first, target, _settings(context.batches, first, target)))
    if scope.pending is not None:
        actions.append(PlanBatch(number, scope.pending))
    # Before the first action that changes what is in use.
    actions.append(VerifyGeneration(number, first, target, scope.pending, scope.state_until))
    if isinstance(change, Swap):
        actions += [StageOutput(target), RunStaged(number), SwapOutput(change)]
    elif change.batches:
        actions.append(CutSink(change))
    actions.append(SwitchGeneration(old, number))
    return tuple(actions)


def _settings(batches: BatchHistory, first: int, target: int) -> tuple[ReplaySettings, ...]:
    groups = groupby(range(first, target + 1), batches.settings)
    spans = [(settings, list(group)) for settings, group in groups]
    return tuple(
        ReplaySettings(group[0], group[-1], None if settings is None else dict(settings)) for settings, group in spans
    )


def _facts(context: PlanContext, scope: Scope) -> PlannedFacts:
    snapshot, target = context.snapshot, scope.target
    marks = snapshot.marks
    before, starts = marks.committed if scope.added else target, scope.starts
    if starts is None:
        runs, code, batches = context.history.runs, context.code, context.batches
        notes = notes_of(
            snapshot,
            context.goal,
            scope,
            asked=context.target,
            code_differs=scope.state.stateful and not all(code.reads_as(runs.get(one)) for one in range(target + 1)),
            settings=[
                (
                    batch_range(group.first, group.last),
                    {
                        key: text
                        for key, text in (group.settings or {}).items()
                        if key not in batches.pinned(group.first)
                    },
                )
                for group in _settings(batches, scope.first, target)
            ],
        )
    elif context.side is not None:
        notes = notes_of_directory(starts, target, context.side)
    elif scope.added:
        notes = notes_of_backfill(starts, target)
    else:
        notes = notes_of_start(starts, target, context.request.output)
    return PlannedFacts(
        planned=marks.planned,
        committed=marks.committed,
        state=marks.state,
        written=marks.written,
        target=target,
        contributing=scope.first,
        pending=scope.pending,
        watermark_ms=context.batches.offset(before).watermark_ms if before in context.history.offsets else 0,
        retention_ms=scope.state.retention_ms,
        delay_ms=scope.state.delay_ms,
        checkpoint_present=snapshot.checkpoint_present,
        ranges_from="checkpoint" if snapshot.checkpoint_present else "ledger",
        notes=notes,
        adopted=context.facts.path.path,
        keeps_unmarked=snapshot.output.unmarked is not None and context.request.output == "keep",
    )


def listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _preconditions(context: PlanContext, scope: Scope, actions: tuple[Action, ...]) -> tuple[Precondition, ...]:
    marks, change = context.snapshot.marks, change_of(actions)
    expected: dict[PreconditionName, str] = {
        "generation": str(context.snapshot.generation.number),
        "planned": str(marks.planned),
        "committed": str(marks.committed),
        "written": written_text(context.snapshot),
        "history": context.batches.digest(batches_used(scope.first, scope.target, scope.pending)),
        "pipeline": context.code.digest,
        "source-files": listed(()),
        "readers": listed(context.readers),
        "writer": listed(()),
        "backfill-directory": listed(()),
        "others": "" if change is None else change.seen,
    }
    return tuple(
        Precondition(index, name, expected[name])
        for index, action in enumerate(actions)
        for name in (*action.needs, *context.facts.path.needs(action.kind))
    )
