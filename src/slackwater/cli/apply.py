"""``slackwater apply``: applies a plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.cli.arguments import (
    Format,
    Parser,
    add_consent,
    add_debug,
    add_format,
    add_home,
    add_spark,
    add_stopped,
    consent_of,
    path,
    string,
)
from slackwater.cli.console import err, out, parse_conf, prepare, print_json
from slackwater.errors import Refused, UsageError

if TYPE_CHECKING:
    from slackwater.model.plan import Plan


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    parser.add_argument("plan_file", metavar="PLAN", type=path, help="a file written by slackwater plan ... --out")
    parser.add_argument("--yes", action="store_true", help="do not ask for the stream's name")
    parser.add_argument(
        "--confirm", metavar="NAME", type=string, help="the stream's name; a plan that clears the output needs it"
    )
    add_stopped(parser)
    add_spark(parser)
    add_home(parser)
    add_consent(parser)
    add_debug(parser)
    add_format(parser)
    parser.epilog = "Each step is journaled: an interrupted apply is continued by running it again."
    parser.set_defaults(verb=apply)


def apply(
    *,
    plan_file: Path,
    yes: bool,
    confirm: str | None,
    stopped: bool,
    master: str | None,
    conf: list[str] | None,
    home: str | None,
    moved: bool,
    copied: bool,
    debug: bool,
    shown_as: Format,
) -> int:
    """Show the plan, have it confirmed, apply it."""
    from slackwater.app.apply_plan import ApplyOptions, apply_plan, is_started  # noqa: PLC0415 - light start
    from slackwater.app.documents.apply import apply_document  # noqa: PLC0415
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.cli.apply_display import ApplyDisplay  # noqa: PLC0415
    from slackwater.plan.document import parse  # noqa: PLC0415
    from slackwater.plan.words import start_command  # noqa: PLC0415

    settings = prepare(home, shown_as, logging=True, debug=debug)
    plan = parse(_read(plan_file), plan_file)
    options = ApplyOptions(parse_conf(conf), master, consent_of(moved=moved, copied=copied), stopped)
    with open_workspace(settings, restore=True) as workspace:
        if not is_started(workspace, plan) or not yes:
            _check_confirmed(plan, confirm, yes=yes)
        with ApplyDisplay(plan) as display:
            applied = apply_plan(workspace, plan, display, options)
    if shown_as is Format.JSON:
        print_json(apply_document(applied))
    elif not plan.actions:
        out().print(f"nothing was to be done: {plan.stream} can be started as it is", markup=False)
        err().print(f"next: {start_command(plan)}", markup=False)
    elif applied.repeated:
        out().print(f"applied before: plan {plan.id} changed nothing now", markup=False)
    else:
        for one in plan.members:
            out().print(f"applied: {one.stream} {_continues(one)}", markup=False)
        for command in dict.fromkeys(start_command(one) for one in plan.members):
            err().print(f"next: {command}", markup=False)
    return 0


def _continues(plan: Plan) -> str:
    if plan.request.output == "swap":
        return "has caught up, and its new output is in place"
    if plan.request.into is not None:
        return f"is not changed; the rows are in {plan.request.into}"
    last = plan.facts.target
    return f"continues after batch {last}" if last >= 0 else "starts at batch 0"


def _read(file: Path) -> str:
    from slackwater.app.user_files import read_text  # noqa: PLC0415 - light start

    try:
        return read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "plan-absent",
            f"The plan cannot be read: {error}",
            where=str(file),
            hint="slackwater plan rebuild STREAM --out PLAN",
        ) from error


def _check_confirmed(plan: Plan, name: str | None, *, yes: bool) -> None:
    """Raises Refused for another name, UsageError where one is needed and there is no terminal."""
    from slackwater.cli.render_plan import plan_page  # noqa: PLC0415 - light start

    clears = plan.request.output == "clear"
    if name is not None:
        _check_name(plan.stream, name)
    elif clears or not yes:
        err().print(plan_page(plan))
        confirm(plan.stream, "apply the plan", given=f"--confirm {plan.stream}" if clears else "--yes")


def confirm(stream: str, what: str, kind: str = "stream", given: str = "--yes") -> None:
    """Have the name of a stream, or of another ``kind``, typed; ``given`` is the option that does without.

    Raises Refused for another name, UsageError if there is no terminal.
    """
    name = stream.rpartition("/")[2]
    if not sys.stdin.isatty():
        raise UsageError("unconfirmed", "There is no terminal to confirm on", hint=f"give {given}")
    try:
        typed = err().input(f"Type the {kind}'s name ({name}) to {what}: ", markup=False).strip()
    except EOFError:
        typed = ""
    _check_name(stream, typed)


def _check_name(stream: str, typed: str) -> None:
    name = stream.rpartition("/")[2]
    if typed not in (name, stream):
        raise Refused(
            "name-mistyped", "Another name was typed; nothing was changed", expected=name, found=typed or "nothing"
        )
