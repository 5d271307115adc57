"""``slackwater plan``: shows the steps of an operation and changes nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from slackwater.cli.common.arguments import (
    Format,
    consent_of,
)
from slackwater.cli.common.console import out, parse_conf, parse_seconds, prepare, say
from slackwater.cli.common.render_plan import plan_page
from slackwater.core.commands import command, session_words
from slackwater.ledger.workspace import open_workspace
from slackwater.operations.goals.goal import Flag, Value, goal_named
from slackwater.operations.make_plan import make_plan
from slackwater.operations.plan.document import ALL, ALL_MS, plan_again, render, start_command
from slackwater.operations.plan.plan import Plan
from slackwater.operations.planner import absolute_path
from slackwater.runtime.replay.query_runtime import SparkRuntime
from slackwater.storage.user_files import PRIVATE, NewFile, is_file


def plan(
    *,
    goal: str,
    stream: str,
    file: Path | None,
    force: bool,
    pipeline: str | None,
    downstream: bool,
    home: str | None,
    moved: bool,
    copied: bool,
    debug: bool,
    shown_as: Format,
    master: str | None = None,
    conf: list[str] | None = None,
    **flags: str | None,
) -> int:
    settings, planned = prepare(home, shown_as, debug=debug), goal_named(goal)
    values = {flag.field: _value(flag, flags[flag.field]) for flag in planned.flags}
    spark = parse_conf(conf)
    asked = planned.request(values, downstream=downstream)
    request = replace(asked, pipeline_file=_absolute(pipeline), session=session_words(master, spark))
    runtime, consent = SparkRuntime(say, spark, master), consent_of(moved=moved, copied=copied)
    # A plan quotes settings and paths: only its owner may read it.
    new = NewFile(file, force=force, mode=PRIVATE) if file is not None else None
    if new is not None:
        new.check()
    with open_workspace(settings, restore=True) as workspace:
        made = make_plan(workspace, stream, request, runtime, say, consent=consent)
    if new is not None:
        with new.open() as written:
            written.write(render(made).encode())
    if shown_as is Format.JSON:
        sys.stdout.write(render(made))
    else:
        _show(made, file)
    return 0


def _show(made: Plan, file: Path | None) -> None:
    out().print(plan_page(made))
    session = made.request.session
    if not made.actions:
        say(f"next: {start_command(made, session)}")
        return
    again = f"{plan_again(made)} --out {made.id}.json"
    say(f"next: {again if file is None else command('apply', str(file), *session)}")


def _value(flag: Flag, text: str | None) -> Value:
    if text is None:
        return None
    if flag.kind == "duration":
        return ALL_MS if text == ALL else int(parse_seconds(text) * 1000)
    if flag.kind == "directory":
        return absolute_path(text)
    return text


def _absolute(reference: str | None) -> str:
    if reference is None:
        return ""
    return str(Path(reference).absolute()) if is_file(reference) else reference
