from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from slackwater.cli.common.console import err
from slackwater.core.commands import command
from slackwater.core.units import utc_text
from slackwater.operations.action import Action, Display, Inverse
from slackwater.operations.plan.cost import cost_lines, total_lines
from slackwater.operations.plan.document import title
from slackwater.operations.plan.plan import Plan, PlannedFacts

if TYPE_CHECKING:
    from slackwater.operations.apply.apply_plan import Outcome


def plan_page(plan: Plan) -> Group:
    parts: list[Text | Table] = [Text(f"plan {plan.id}: {title(plan)}", style="bold"), *_of_stream(plan)]
    for number, stage in enumerate(plan.downstream, start=2):
        parts += [Text(), Text(f"stage {number}: {title(stage)}", style="bold"), *_of_stream(stage)]
    if plan.downstream:
        parts += [Text(), Text("in all", style="bold"), *map(_indented, total_lines(plan))]
    if plan.actions:
        parts += [Text(), Text("undo", style="bold"), *_undo(plan)]
    return Group(*parts)


def outcome_document(outcome: Outcome, schema: str, id_field: str) -> dict[str, Any]:
    """``id_field`` names the field with the id of plan and operation."""
    plan = outcome.plan
    return {
        "schema": schema,
        "outcome": outcome.outcome,
        "repeated": outcome.repeated,
        id_field: plan.id,
        "stream": plan.stream,
        "downstream": [one.stream for one in plan.downstream],
    }


def _of_stream(plan: Plan) -> Iterator[Text | Table]:
    yield from (Text(), number_line(plan.facts))
    yield from (Text(f"note: {note}") for note in plan.facts.notes)
    if not plan.actions:
        return
    yield from (Text(), Text("what will be done", style="bold"), _steps(plan))
    yield from (Text(), Text("what it costs", style="bold"), *map(_indented, cost_lines(plan)))
    if plan.risks:
        yield from (Text(), Text("risks", style="bold"), *map(_indented, plan.risks))


def _indented(line: str) -> Text:
    return Text(f"  {line}")


def number_line(facts: PlannedFacts) -> Table:
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


def _undo(plan: Plan) -> list[Text]:
    until = "one of the streams has run again" if plan.downstream else "the stream has run again"
    lines = [Text(f"  {command('undo', plan.id, '--yes')}{'' if plan.request.into else f', until {until}'}:")]
    return lines + [Text(f"  - {text}") for text in undo_texts(plan)]


def undo_texts(plan: Plan) -> Iterator[str]:
    for one in reversed(plan.members):
        of_it = f"{one.stream}: " if plan.downstream else ""
        yield from (f"{of_it}{step.inverse.text()}" for step in one.undo)


def _steps(plan: Plan) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for number, action in enumerate(plan.actions, start=1):
        table.add_row(f"  {number}.", action.text())
    return table


def _timestamp(epoch_ms: int) -> str:
    return utc_text(epoch_ms) if epoch_ms > 0 else "none yet"


class ApplyDisplay(Display):
    def __init__(self, plan: Plan) -> None:
        self._console = err()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task("replay", total=sum(one.cost.batches_replayed for one in plan.members))

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        self._console.print(text, soft_wrap=not sys.stderr.isatty())

    def action(self, action: Action | Inverse) -> None:
        self._console.print(f"- {action.text()}", soft_wrap=not sys.stderr.isatty())

    def batch(self, batch: int) -> None:
        self._progress.update(self._task, advance=1, description=f"replayed batch {batch}")
