"""The page of a plan: the marks of the stream, the actions, their cost, and how they are undone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from typing import assert_never

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slackwater.diagnose.words import batch_range
from slackwater.model.actions import (
    Action,
    Base,
    BuildGeneration,
    CopyGeneration,
    CutBackfill,
    CutSink,
    DiscardAside,
    DiscardStaged,
    Inverse,
    PlanBatch,
    RemoveGeneration,
    ReplayBatches,
    RestoreSink,
    RunAside,
    RunBackfill,
    RunStaged,
    SkipBatch,
    StageOutput,
    StartGeneration,
    SwapBack,
    SwapOutput,
    SwitchGeneration,
    VerifyGeneration,
)
from slackwater.model.plan import Cost, Facts, Plan
from slackwater.model.sink import Cut
from slackwater.model.units import utc_text
from slackwater.plan.words import title


def plan_page(plan: Plan) -> Group:
    """The whole page, with a part for each later stage."""
    parts: list[Text | Table] = [Text(f"plan {plan.id}: {title(plan)}", style="bold"), *_of_stream(plan)]
    for number, stage in enumerate(plan.downstream, start=2):
        parts += [Text(), Text(f"stage {number}: {title(stage)}", style="bold"), *_of_stream(stage)]
    if plan.downstream:
        parts += [Text(), Text("in all", style="bold"), *_cost_text(_total(plan))]
    if plan.actions:
        parts += [Text(), Text("undo", style="bold"), *_undo(plan)]
    return Group(*parts)


def _of_stream(plan: Plan) -> Iterator[Text | Table]:
    yield from (Text(), number_line(plan.facts))
    yield from (Text(f"note: {note}") for note in plan.facts.notes)
    if not plan.actions:
        return
    yield from (Text(), Text("what will be done", style="bold"), _steps(plan))
    yield from (Text(), Text("what it costs", style="bold"), *_cost_of(plan))
    if plan.risks:
        yield from (Text(), Text("risks", style="bold"), *[Text(f"  {risk}") for risk in plan.risks])


def number_line(facts: Facts) -> Table:
    """The marks, each with what it means for this plan."""
    table = Table(box=None, pad_edge=False, show_header=False)
    rows = [
        ("planned", facts.planned, "newest batch in offsets/"),
        ("committed", facts.committed, "newest batch in commits/"),
        ("state", facts.state, "newest batch whose state can be loaded"),
        ("written", facts.written, "newest batch the sink itself shows"),
        ("continue after", facts.target, f"watermark {_timestamp(facts.watermark_ms)}"),
        (
            "contributing",
            facts.contributing if facts.contributing <= facts.target else None,
            "first batch to read again",
        ),
    ]
    for name, batch, meaning in rows:
        table.add_row(f"  {name}", "-" if batch is None or batch < 0 else str(batch), meaning)
    return table


def step_text(action: Action | Inverse) -> str:
    """One action, or the inverse of one, in a sentence."""
    match action:
        case BuildGeneration() | CopyGeneration() | StartGeneration():
            text = _base_text(action)
        case ReplayBatches():
            text = f"replay {batch_range(action.first, action.last)} under their own ids, without output"
        case PlanBatch() | SkipBatch() | RunBackfill() | CutBackfill() | RunAside() | DiscardAside():
            text = _batch_text(action)
        case VerifyGeneration():
            known = f"those recorded up to batch {action.last}" if action.last >= 0 else "as they should be"
            text = f"verify that its marks, ranges and watermarks are {known}"
        case CutSink():
            text = f"cut the sink back to batch {action.cut.after}: {taken_out(action.cut)}, moved to the backup"
        case StageOutput() | RunStaged() | SwapOutput() | DiscardStaged() | SwapBack():
            text = _swap_text(action)
        case SwitchGeneration():
            text = _switch_text(action)
        case RemoveGeneration():
            text = f"remove generation {action.number}, which the operation has built"
        case RestoreSink():
            text = f"restore {batch_range(action.cut.batches[0], action.cut.batches[-1])} in the sink"
        case _:
            assert_never(action)
    return text


def _base_text(action: Base) -> str:
    if isinstance(action, BuildGeneration):
        return f"build generation {action.number} aside, with the query's id {action.query_id}"
    if isinstance(action, StartGeneration):
        before = f"behind batch {action.last}" if action.last >= 0 else "before batch 0"
        return f"build generation {action.number} aside, {before}, with its sources at the positions above and no state"
    if action.last < 0:
        what = "without any batch"
    elif action.state is None:
        what = f"with the ranges up to batch {action.last}"
    else:
        what = f"with the state up to batch {action.state}"
    return f"copy generation {action.source} to generation {action.number} aside, {what}"


def _batch_text(action: PlanBatch | SkipBatch | RunBackfill | CutBackfill | RunAside | DiscardAside) -> str:
    match action:
        case PlanBatch():
            return f"plan batch {action.batch} with its recorded range"
        case SkipBatch():
            return (
                f"skip batch {action.batch} in it: the query continues with batch {action.batch + 1} from where it is"
            )
        case RunBackfill():
            return f"run batch {action.batch} with generation {action.number} into the sink, and no other batch"
        case CutBackfill():
            return f"cut the sink back to batch {action.after}"
        case RunAside():
            where = f"{action.output.path}, as {action.output.format} files"
            return f"run the batch with generation {action.number} into {where}"
        case DiscardAside():
            return f"remove from {action.output.path} what the operation has written to it"


def _swap_text(action: StageOutput | RunStaged | SwapOutput | DiscardStaged | SwapBack) -> str:
    match action:
        case StageOutput():
            return f"prepare an output aside, {f'with batches 0..{action.after}' if action.after >= 0 else 'empty'}"
        case RunStaged():
            return f"run the query with generation {action.number} into it, until it has caught up"
        case SwapOutput():
            return "put it in the place of the output, in one step; the old output stays"
        case DiscardStaged():
            return "remove the output that was built aside"
        case SwapBack():
            return "put the old output back in its place"


def taken_out(cut: Cut) -> str:
    """What a cut takes out, in the units that the output counts, of each of several outputs."""
    if cut.members:
        return "; ".join(taken_out(part) for part in cut.members if part.batches)
    files = f"{len(cut.files)} files, {cut.bytes:,} bytes" if cut.files else ""
    rows = f"{cut.rows:,} rows" if cut.rows is not None else ""
    return ", ".join(filter(None, (rows, files))) or batch_range(cut.batches[0], cut.batches[-1])


def _switch_text(action: SwitchGeneration) -> str:
    if action.new < action.old:
        # Numbers only grow: this is the inverse, after which the operation's own generation is removed.
        return f"switch back from generation {action.old} to {action.new}"
    return f"switch from generation {action.old} to {action.new}; {action.old} stays"


def _undo(plan: Plan) -> list[Text]:
    until = "one of the streams has run again" if plan.downstream else "the stream has run again"
    lines = [Text(f"  slackwater undo {plan.id} --yes{'' if plan.request.into else f', until {until}'}:")]
    return lines + [Text(f"  - {text}") for text in undo_texts(plan)]


def undo_texts(plan: Plan) -> Iterator[str]:
    """What an undo does, in its order: the last stage first."""
    for one in reversed(plan.members):
        of_it = f"{one.stream}: " if plan.downstream else ""
        yield from (f"{of_it}{step_text(step.inverse)}" for step in one.undo)


def _steps(plan: Plan) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for number, action in enumerate(plan.actions, start=1):
        table.add_row(f"  {number}.", step_text(action))
    return table


def _total(plan: Plan) -> Cost:
    costs = [astuple(one.cost) for one in plan.members]
    return Cost(*(sum(column) for column in zip(*costs, strict=True)))


def _cost_of(plan: Plan) -> list[Text]:
    if plan.goal == "backfill":
        return [Text("  one batch, which reads all of the range above at once; nothing is read again")]
    return _cost_text(plan.cost)


def _cost_text(cost: Cost) -> list[Text]:
    more = f" and those of {cost.batches_uncounted} uncounted" if cost.batches_uncounted else ""
    read = f"{cost.rows_read_again:,} of {cost.rows_recorded:,} recorded rows{more}"
    lines = [Text(f"  {cost.batches_replayed} batches are run again, reading {read}")]
    if cost.batches_cut:
        lines.append(Text(f"  {cost.batches_cut} batches are cut from the sink and recomputed"))
    return lines


def _timestamp(epoch_ms: int) -> str:
    return utc_text(epoch_ms) if epoch_ms > 0 else "none yet"
