"""``slackwater apply``: carries out a plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.console import (
    ConfOption,
    Format,
    FormatOption,
    HomeOption,
    MasterOption,
    err,
    out,
    parse_conf,
    prepare,
    print_json,
)
from slackwater.errors import Refused, UsageError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("apply", help="Carry out a plan; refuses if anything moved since it was made.")(apply)


def apply(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="What slackwater plan ... --out wrote.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for the stream's name.")] = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    home: HomeOption = None,
    shown_as: FormatOption = Format.TEXT,
) -> None:
    """Each step is journaled: an interrupted apply is carried on by running it again."""
    from slackwater.app.apply_plan import apply_plan  # noqa: PLC0415 - light start
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.cli.apply_display import ApplyDisplay  # noqa: PLC0415
    from slackwater.cli.render_plan import plan_page  # noqa: PLC0415
    from slackwater.plan.document import parse  # noqa: PLC0415

    settings = prepare(home, shown_as, logging=True)
    plan = parse(_read(plan_file), plan_file)
    if not yes:
        err().print(plan_page(plan))
        _confirm(plan.stream)
    with open_workspace(settings) as workspace, ApplyDisplay(plan) as display:
        applied = apply_plan(workspace, plan, display, parse_conf(conf), master)
    if shown_as is Format.JSON:
        told = {"outcome": applied.outcome, "repeated": applied.repeated, "plan": plan.id, "stream": plan.stream}
        print_json({"schema": "slackwater.apply/1", **told})
    elif applied.repeated:
        out().print(f"applied before: plan {plan.id} changed nothing now", markup=False)
    else:
        out().print(f"applied: {plan.stream} goes on after batch {plan.facts.target}", markup=False)
        err().print(f"next: slackwater run {plan.pipeline_file}", markup=False)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "plan-absent",
            f"The plan cannot be read: {error}",
            where=str(file),
            hint="slackwater plan rebuild STREAM --out PLAN",
        ) from error


def _confirm(stream: str) -> None:
    name = stream.rpartition("/")[2]
    if not sys.stdin.isatty():
        raise UsageError("unconfirmed", "Nobody is here to confirm the plan", hint="give --yes")
    typed = typer.prompt(f"Type the stream's name ({name}) to carry the plan out", err=True)
    if typed.strip() not in (name, stream):
        raise Refused(
            "name-mistyped", "Another name was typed; nothing was changed", expected=name, found=typed.strip()
        )
