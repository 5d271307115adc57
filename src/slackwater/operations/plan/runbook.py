"""A plan as a runbook in Markdown: numbered steps for somebody who does by hand what ``slackwater apply`` would do.

Commands in it are ``sh`` blocks or code; they are typed in the project's folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from slackwater.core.action import Marks, Places, Step
from slackwater.core.commands import command, mention, undo_command
from slackwater.core.escaping import code_span, markdown, printable, quoted
from slackwater.core.plan import Facts, Plan
from slackwater.core.precondition import PRECONDITIONS, Precondition
from slackwater.core.units import utc_text
from slackwater.ledger.home.home import Home
from slackwater.operations.plan.adopted import BUILT, is_of_objects, staging_of
from slackwater.operations.plan.cost import cost_lines, total_lines
from slackwater.operations.plan.words import plan_again, title


def runbook(plan: Plan, home: Home, file: str) -> str:
    """The runbook of a plan that is, or could be, in ``file``; later stages follow in the order of their steps."""
    first = _of_stream(plan, f"# Runbook: {title(plan)}", _introduction(plan, home, file))
    stages = [
        _of_stream(stage, f"# Stage {number}: {title(stage)}", _places_of(stage, home))
        for number, stage in enumerate(plan.downstream, start=2)
    ]
    total = ["\n".join(part) + "\n" for part in _list("Cost of all stages", tuple(total_lines(plan)))] if stages else []
    return printable("\n".join([first, *stages, *total]))


def _of_stream(plan: Plan, title: str, introduction: list[str]) -> str:
    places = _places(plan)
    parts = [
        [title, "", *introduction],
        _checks(plan),
        _number_line(plan),
        *_steps("Steps", [action.step(places) for action in plan.actions]),
        _verify(plan),
        *_list("Cost", tuple(cost_lines(plan))),
        *_list("Risks", plan.risks),
        *_steps("Go back", [one.inverse.step(places) for one in plan.undo], _before_undo(plan)),
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _places(plan: Plan) -> Places:
    recorded = next((int(one.expected) for one in plan.preconditions if one.name == "generation"), None)
    built = frozenset(action.built for action in plan.actions if action.built is not None)
    return Places(
        plan.facts.adopted,
        built,
        recorded if plan.facts.checkpoint_present else None,
        plan.facts.committed,
        built - _switched_to(plan) if plan.facts.adopted is not None else frozenset(),
    )


def _switched_to(plan: Plan) -> frozenset[int]:
    return frozenset(action.switch.new for action in plan.actions if action.switch is not None)


def _introduction(plan: Plan, home: Home, file: str) -> list[str]:
    made = f"Plan {plan.id}, made at {plan.made_at}"
    the = "the streams" if plan.downstream else "the stream"
    return [
        f"{made} for {code_span(plan.pipeline_file)}." if plan.pipeline_file else f"{made}.",
        f"It is for the facts below, as expected. Stop {the} first: {', '.join(map(_stop, plan.members))}.",
        *_order(plan),
        "",
        *_places_of(plan, home),
        "",
        f"`{mention('apply')}` does all of the steps, records each, and can be continued after a crash:",
        "",
        "```sh",
        command("apply", file),
        "```",
        *_of_the_ledger(plan),
    ]


def _order(plan: Plan) -> Iterator[str]:
    if plan.downstream:
        yield "The later stages follow in the order in which they are done. Go back in the opposite order, and whole."


def _places_of(plan: Plan, home: Home) -> list[str]:
    return [
        "The commands and paths below use:",
        "",
        "```sh",
        f"export SLACKWATER_HOME={quoted(str(home.location))}",
        *_checkpoints(plan, home),
        "```",
    ]


def _stop(plan: Plan) -> str:
    adopted = plan.facts.adopted is not None
    return "end the program that runs it" if adopted else f"`{command('stop', plan.stream)}`"


def _checkpoints(plan: Plan, home: Home) -> Iterator[str]:
    path = plan.facts.adopted
    if path is None or _places(plan).own:
        yield f"export CHECKPOINTS={quoted(str(home.checkpoints(*plan.stream.split('/', 1))))}"
    if path is not None:
        yield f"export CHECKPOINT={quoted(path)}"
        pipeline, name = plan.stream.split("/", 1)
        built = home.operation(pipeline, name, plan.id) / BUILT
        if _switched_to(plan):
            yield f"export ASIDE={quoted(str(built) if is_of_objects(path) else staging_of(path, plan.id))}"


def _of_the_ledger(plan: Plan) -> Iterator[str]:
    if not plan.facts.checkpoint_present:
        yield ""
        yield "The checkpoint does not exist any more. The ledger has its entries as Spark wrote them, for example:"
        yield ""
        yield "```sql"
        yield "select text from log_lines"
        yield f"where stream = '{plan.stream}' and log = 'offsets' and entry = 0 order by generation desc;"
        yield "```"


def _checks(plan: Plan) -> list[str]:
    rows = {(one.name, one.expected): one for one in plan.preconditions}
    lines = ["## Check first", "", "| fact | expected | shown by |", "|---|---|---|"]
    lines += [
        f"| {PRECONDITIONS[one.name]} | {_expected(one)} | {_cell(_shown_by(one, plan))} |" for one in rows.values()
    ]
    lines += [f"\nNote: {markdown(note)}" for note in plan.facts.notes]
    return lines


def _expected(one: Precondition) -> str:
    # A digest of many ranges, which no command shows.
    return "recorded" if one.name == "history" else _cell(one.expected)


def _cell(text: str) -> str:
    return code_span(text.replace("\n", " ")).replace("|", r"\|")


def _shown_by(one: Precondition, plan: Plan) -> str:
    """The command that shows the fact of a precondition."""
    facts = plan.facts
    match one.name:
        case "generation" | "readers":
            return command("ledger", plan.stream) if one.name == "generation" else command("ledger")
        case "planned" | "committed":
            return command("inspect", plan.stream)
        case "written" | "source-files":
            return command("status", plan.stream)
        case "history":
            first = max(min(facts.contributing, facts.target), 0)
            return command("ledger", plan.stream, "--batches", f"{first}..")
        case "pipeline":
            return f"sha256sum {quoted(plan.pipeline_file)}"
        case "side-output":
            return f"ls -A {quoted(plan.request.into or '.')}"
        case "others":
            return f"{plan_again(plan)} --format json"
        case "writer":
            return _shown_of_writer(facts.adopted)
        case _:
            assert_never(one.name)


def _shown_of_writer(adopted: str | None) -> str:
    if is_of_objects(adopted or "/"):
        return f"no object below {adopted} is newer than a minute, by a listing of the store"
    return f"find {quoted(adopted or '.')} -type f -mmin -1"


def _number_line(plan: Plan) -> list[str]:
    facts = plan.facts
    before: Marks = {
        "planned": facts.planned,
        "committed": facts.committed,
        "state": facts.state,
        "written": facts.written,
    }
    after = _marks_after(plan, before)
    lines = ["## Number line", "", "| mark | before | after |", "|---|---|---|"]
    lines += [f"| {name} | {_mark(batch)} | {_mark(after[name])} |" for name, batch in before.items()]
    return [*lines, "", _continues(facts, after["planned"], after["committed"])]


def _marks_after(plan: Plan, marks: Marks) -> Marks:
    """The marks when the steps are done: those that the new checkpoint is verified to have."""
    if plan.request.into is None:
        for action in plan.actions:
            marks = action.marks_after(marks)
    return marks


def _mark(batch: int | None) -> str:
    return "-" if batch is None or batch < 0 else str(batch)


def _continues(facts: Facts, planned: int | None, committed: int | None) -> str:
    following = (-1 if committed is None else committed) + 1
    range_of = "with its recorded range" if planned == following else "with new input"
    if facts.target < 0:
        return f"The stream continues with batch {following}, {range_of}."
    watermark = utc_text(facts.watermark_ms) if facts.watermark_ms > 0 else "none yet"
    return f"The stream continues with batch {following}, {range_of}. Watermark of batch {facts.target}: {watermark}."


def _steps(title: str, steps: list[Step], before: tuple[str, ...] = ()) -> Iterator[list[str]]:
    if not steps:
        return
    yield [f"## {title}", *before]
    for number, step in enumerate(steps, start=1):
        yield [f"### {number}. {step.title}", "", *step.lines]


def _verify(plan: Plan) -> list[str]:
    return [
        "## Verify afterwards",
        "",
        "The marks are those of the number line, and no row is missing from the output or in it twice:",
        "",
        "```sh",
        command("status", plan.stream, "--verify"),
        command("inspect", plan.stream, "--operators"),
        command("ledger", "--operations"),
        "```",
    ]


def _list(title: str, entries: tuple[str, ...]) -> Iterator[list[str]]:
    if entries:
        yield [f"## {title}", "", *(f"- {markdown(entry)}" for entry in entries)]


def _before_undo(plan: Plan) -> tuple[str, ...]:
    possible = "at any time" if plan.request.into is not None else "until the stream has run again"
    return (
        "",
        f"Possible {possible}. If `{mention('apply')}` did the steps, this takes them back:",
        "",
        "```sh",
        undo_command(plan.id),
        "```",
        "",
        "By hand:",
    )
