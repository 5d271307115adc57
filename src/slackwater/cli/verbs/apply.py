"""``slackwater apply`` and ``slackwater undo``: applies a plan, and undoes its operation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import Document, check_name, confirm, err, out, parse_conf, prepare, print_json, say
from slackwater.cli.verbs.plan import plan_page, undo_texts
from slackwater.core.commands import command, session_words
from slackwater.core.errors import NotFound, UsageError
from slackwater.ledger.workspace import open_workspace
from slackwater.operations.action import Action, Display, Inverse
from slackwater.operations.apply.apply_plan import apply_plan, is_started
from slackwater.operations.apply.undo_operation import (
    check_undoable,
    find_operation,
    plan_of_operation,
    recorded_plan,
    undo_operation,
)
from slackwater.operations.plan.document import parse, start_command
from slackwater.runtime.replay import SparkRuntime
from slackwater.storage.open import Location
from slackwater.storage.user_files import read_text

if TYPE_CHECKING:
    from slackwater.core.settings import Settings
    from slackwater.operations.plan.plan import Plan


SCHEMA = "slackwater.apply/1"
UNDO_SCHEMA = "slackwater.undo/1"
PLANS_ARE_WRITTEN = f"{command('status')} shows the plan that a stream needs; --out writes it to a file"


def apply(
    *,
    plan_file: Path | str,
    yes: bool,
    name: str | None,
    discard_others: str | None,
    stopped: bool,
    master: str | None,
    conf: list[str] | None,
    home: str | None,
    debug: bool,
    shown_as: Format,
) -> int:
    settings = prepare(home, shown_as, logging=True, debug=debug)
    plan = _read(settings, plan_file)
    if discard_others is not None:
        check_name(plan.stream, discard_others)
    spark = parse_conf(conf)
    session = session_words(master, spark) or plan.request.session
    with open_workspace(settings, restore=True) as workspace:
        if not is_started(workspace, plan) or not yes:
            if name is not None:
                check_name(plan.stream, name)
            elif plan.needs_name or not yes:
                err().print(plan_page(plan))
                given = f"--confirm {plan.stream}" if plan.needs_name else "--yes"
                confirm(plan.stream, "apply the plan", given=given)
        with ApplyDisplay(plan) as display:
            runtime = SparkRuntime(display.say, spark, master)
            applied = apply_plan(
                workspace,
                plan,
                runtime,
                display,
                file=plan_file,
                stopped=stopped,
                discard_others=discard_others is not None,
                session=session,
            )
        streams = [workspace.ledger.stream(one.stream) for one in plan.members]
    following = [start_command(one, stream, session) for one, stream in zip(plan.members, streams, strict=True)]
    if shown_as is Format.JSON:
        print_json(outcome_document(plan, SCHEMA, "plan", "applied", repeated=not applied))
    elif not plan.actions:
        out().print(f"nothing was to be done: {plan.stream} can be started as it is")
        say(f"next: {following[0]}")
    elif not applied:
        out().print(f"applied before: plan {plan.id} changed nothing now")
    else:
        for one in plan.members:
            out().print(f"applied: {one.stream} {_continues(one)}")
        for line in dict.fromkeys(following):
            say(f"next: {line}")
    return 0


def _continues(plan: Plan) -> str:
    if plan.request.output == "swap":
        return "has caught up, and its new output is in place"
    if plan.request.into is not None:
        return f"is not changed; the rows are in {plan.request.into}"
    last = plan.facts.target
    return f"continues after batch {last}" if last >= 0 else "starts at batch 0"


def _read(settings: Settings, file: Path | str) -> Plan:
    try:
        return parse(read_text(file), file)
    except (FileNotFoundError, NotADirectoryError) as error:
        # What was started is finished without the file: the ledger has its plan.
        recorded = recorded_plan(settings, file)
        if recorded is not None:
            return recorded
        raise NotFound(
            "plan-absent",
            "There is no such plan file",
            where=str(Location(file)),
            hint="check the path; " + PLANS_ARE_WRITTEN,
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "plan-unreadable", f"The plan cannot be read: {error}", where=str(file), hint=PLANS_ARE_WRITTEN
        ) from error


def undo(*, operation: str, yes: bool, stopped: bool, home: str | None, shown_as: Format) -> int:
    settings = prepare(home, shown_as, logging=True)
    with open_workspace(settings, restore=True) as workspace:
        record = find_operation(workspace, operation)
        plan = plan_of_operation(workspace, record)
        if not yes:
            check_undoable(workspace, record)
            for text in undo_texts(plan):
                err().print(f"- {text}")
            confirm(plan.stream, "take the operation back")
        with ApplyDisplay(plan) as display:
            undone = undo_operation(workspace, record, plan, display, stopped=stopped)
    if shown_as is Format.JSON:
        print_json(outcome_document(plan, UNDO_SCHEMA, "operation", "undone", repeated=not undone))
    elif not undone:
        out().print(f"nothing to undo: operation {plan.id} has no effect left")
    else:
        for one in plan.members:
            out().print(f"undone: {one.stream} is as it was before operation {plan.id}")
        say(f"next: {command('status', plan.stream)}")
    return 0


def outcome_document(plan: Plan, schema: str, id_field: str, outcome: str, *, repeated: bool) -> Document:
    """``id_field`` names the field with the id of plan and operation."""
    return {
        "schema": schema,
        "outcome": outcome,
        "repeated": repeated,
        id_field: plan.id,
        "stream": plan.stream,
        "downstream": [one.stream for one in plan.downstream],
    }


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
        self._task = self._progress.add_task(
            "replay", total=sum(one.cost.batches_replayed for one in plan.members), visible=False
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        self._console.print(text)

    def action(self, action: Action | Inverse) -> None:
        self._console.print(f"- {action.text()}")

    def batch(self, batch: int) -> None:
        self._progress.update(self._task, advance=1, visible=True, description=f"replayed batch {batch}")
