"""``slackwater plan``: shows the steps of an operation and changes nothing."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import mark, out, parse_conf, parse_seconds, prepare, say
from slackwater.cli.common.pages import table_of
from slackwater.core.commands import command, session_words
from slackwater.core.units import utc_text
from slackwater.ledger.workspace import open_workspace
from slackwater.operations.goals.goal import Flag, Value, goal_named
from slackwater.operations.make_plan import make_plan
from slackwater.operations.plan.cost import cost_lines, total_lines
from slackwater.operations.plan.document import ALL, ALL_MS, plan_again, render, start_command, title
from slackwater.operations.plan.plan import Plan, PlannedFacts
from slackwater.runtime.replay import SparkRuntime
from slackwater.sinks.common.directory import absolute, directory
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
    if pipeline is not None and is_file(pipeline):
        pipeline = str(Path(pipeline).absolute())
    request = replace(asked, pipeline_file=pipeline or "", session=session_words(master, spark))
    runtime = SparkRuntime(say, spark, master)
    # A plan quotes settings and paths: only its owner may read it.
    new = NewFile(file, force=force, mode=PRIVATE) if file is not None else None
    if new is not None:
        new.check()
    with open_workspace(settings, restore=True) as workspace:
        made = make_plan(workspace, stream, request, runtime, say)
        following = start_command(made, workspace.ledger.stream(made.stream), made.request.session)
    if new is not None:
        with new.open() as written:
            written.write(render(made).encode())
    if shown_as is Format.JSON:
        sys.stdout.write(render(made))
    else:
        out().print(plan_page(made))
        if made.actions and file is not None:
            following = command("apply", str(file), *made.request.session)
        elif made.actions:
            following = f"{plan_again(made)} --out {made.id}.json"
        say(f"next: {following}")
    return 0


def _value(flag: Flag, text: str | None) -> Value:
    if text is None:
        return None
    if flag.kind == "duration":
        return ALL_MS if text == ALL else int(parse_seconds(text) * 1000)
    if flag.kind == "directory":
        return absolute(directory(text, "--into /data/older"))
    return text


def plan_page(plan: Plan) -> Group:
    parts: list[Text | Table] = [Text(f"plan {plan.id}: {title(plan)}", style="bold"), *_of_stream(plan)]
    for number, stage in enumerate(plan.downstream, start=2):
        parts += [Text(), Text(f"stage {number}: {title(stage)}", style="bold"), *_of_stream(stage)]
    if plan.downstream:
        parts += [Text(), Text("in all", style="bold"), *map(_indented, total_lines(plan))]
    if plan.actions:
        until = "one of the streams has run again" if plan.downstream else "the stream has run again"
        undo = f"  {command('undo', plan.id, '--yes')}{'' if plan.request.into else f', until {until}'}:"
        parts += [Text(), Text("undo", style="bold"), Text(undo)]
        parts += [Text(f"  - {text}") for text in undo_texts(plan)]
    return Group(*parts)


def _of_stream(plan: Plan) -> Iterator[Text | Table]:
    yield from (Text(), number_line(plan.facts))
    if not plan.actions:
        yield from (Text(f"note: {note}") for note in plan.facts.notes)
        return
    steps = table_of((), ((f"{number}.", action.text()) for number, action in enumerate(plan.actions, start=1)))
    yield from (Text(), Text("what will be done", style="bold"), steps)
    yield from (Text(), Text("what it costs", style="bold"), *map(_indented, cost_lines(plan)))
    for title_of_lines, lines in (("risks", plan.risks), ("notes", plan.facts.notes)):
        if lines:
            yield from (Text(), Text(title_of_lines, style="bold"), *map(_indented, lines))


def _indented(line: str) -> Text:
    return Text(f"  {line}")


def number_line(facts: PlannedFacts) -> Table:
    watermark = utc_text(facts.watermark_ms) if facts.watermark_ms > 0 else "none yet"
    rows = [
        ("planned", facts.planned, "newest batch in offsets/"),
        ("committed", facts.committed, "newest batch in commits/"),
        ("state", facts.state, "newest batch whose state can be loaded"),
        ("written", facts.written, "newest batch the sink itself shows"),
        ("continue after", facts.target, f"watermark {watermark}"),
        (
            "reread from",
            facts.contributing if facts.contributing <= facts.target else None,
            "first batch that is read again",
        ),
    ]
    return table_of((), ((name, mark(batch), meaning) for name, batch, meaning in rows))


def undo_texts(plan: Plan) -> Iterator[str]:
    for one in reversed(plan.members):
        of_it = f"{one.stream}: " if plan.downstream else ""
        yield from (f"{of_it}{step.inverse.text()}" for step in one.undo)
