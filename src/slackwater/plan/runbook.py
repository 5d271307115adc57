"""A plan as a runbook in Markdown: numbered steps for somebody who does by hand what ``slackwater apply`` would do.

Commands in it are ``sh`` blocks or code; they are typed in the project's folder.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import assert_never

from slackwater.diagnose.words import undo_command
from slackwater.home.home import Home
from slackwater.model.actions import CutSink, RunBackfill, VerifyGeneration
from slackwater.model.plan import PRECONDITIONS, Facts, Plan, Precondition
from slackwater.model.units import utc_text
from slackwater.plan.adopted import BUILT, aside_of, is_of_objects
from slackwater.plan.runbook_steps import Places, Step, step_back, step_of
from slackwater.plan.words import title


def runbook(plan: Plan, home: Home, file: str) -> str:
    """The runbook of a plan that is, or could be, in ``file``; later stages follow in the order of their steps."""
    first = _of_stream(plan, f"# Runbook: {title(plan)}", _introduction(plan, home, file))
    stages = [
        _of_stream(stage, f"# Stage {number}: {title(stage)}", _places_of(stage, home))
        for number, stage in enumerate(plan.downstream, start=2)
    ]
    return "\n".join([first, *stages])


def _of_stream(plan: Plan, title: str, introduction: list[str]) -> str:
    places = Places(plan)
    parts = [
        [title, "", *introduction],
        _checks(plan),
        _number_line(plan),
        *_steps("Steps", [step_of(action, places) for action in plan.actions]),
        _verify(plan),
        _cost(plan),
        *_list("Risks", plan.risks),
        *_steps("Go back", [step_back(one.inverse, places) for one in plan.undo], _before_undo(plan)),
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _introduction(plan: Plan, home: Home, file: str) -> list[str]:
    made = f"Plan {plan.id}, made at {plan.made_at}"
    the = "the streams" if plan.downstream else "the stream"
    return [
        f"{made} for `{plan.pipeline_file}`." if plan.pipeline_file else f"{made}.",
        f"It is for the facts below, as expected. Stop {the} first: {', '.join(map(_stop, plan.members))}.",
        *_order(plan),
        "",
        *_places_of(plan, home),
        "",
        "`slackwater apply` does all of the steps, records each, and can be continued after a crash:",
        "",
        "```sh",
        f"slackwater apply {shlex.quote(file)}",
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
        f"export SLACKWATER_HOME={shlex.quote(str(home.path))}",
        *_checkpoints(plan, home),
        "```",
    ]


def _stop(plan: Plan) -> str:
    adopted = plan.facts.adopted is not None
    return "end the program that runs it" if adopted else f"`slackwater stop {plan.stream}`"


def _checkpoints(plan: Plan, home: Home) -> Iterator[str]:
    path = plan.facts.adopted
    if path is None:
        yield f"export CHECKPOINTS={shlex.quote(str(home.checkpoints(*plan.stream.split('/', 1))))}"
    else:
        yield f"export CHECKPOINT={shlex.quote(path)}"
        pipeline, name = plan.stream.split("/", 1)
        built = home.operation(pipeline, name, plan.id) / BUILT
        yield f"export ASIDE={shlex.quote(str(built) if is_of_objects(path) else aside_of(path, plan.id))}"


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
        f"| {PRECONDITIONS[one.name]} | {_expected(one)} | `{_cell(_shown_by(one, plan))}` |" for one in rows.values()
    ]
    lines += [f"\nNote: {note}" for note in plan.facts.notes]
    return lines


def _expected(one: Precondition) -> str:
    # A digest of many ranges, which no command shows.
    return "recorded" if one.name == "history" else f"`{_cell(one.expected)}`"


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


def _shown_by(one: Precondition, plan: Plan) -> str:
    """The command that shows the fact of a precondition."""
    facts = plan.facts
    match one.name:
        case "generation":
            return f"slackwater ledger {plan.stream}"
        case "planned" | "committed":
            return f"slackwater inspect {plan.stream}"
        case "written" | "source-files":
            return f"slackwater status {plan.stream}"
        case "history":
            first = max(min(facts.contributing, facts.target), 0)
            return f"slackwater ledger {plan.stream} --batches {first}.."
        case "pipeline":
            return f"sha256sum {shlex.quote(plan.pipeline_file)}"
        case "readers":
            return "slackwater ledger"
        case "side-output":
            return f"ls -A {shlex.quote(plan.request.into or '.')}"
        case "writer":
            return _shown_of_writer(facts.adopted)
        case _:
            assert_never(one.name)


def _shown_of_writer(adopted: str | None) -> str:
    if is_of_objects(adopted or "/"):
        return f"no object below {adopted} is newer than a minute, by a listing of the store"
    return f"find {shlex.quote(adopted or '.')} -type f -mmin -1"


def _number_line(plan: Plan) -> list[str]:
    facts, after = plan.facts, _marks_after(plan)
    before = {
        "planned": facts.planned,
        "committed": facts.committed,
        "state": facts.state,
        "written": facts.written,
    }
    lines = ["## Number line", "", "| mark | before | after |", "|---|---|---|"]
    lines += [f"| {name} | {_mark(batch)} | {_mark(after[name])} |" for name, batch in before.items()]
    return [*lines, "", _continues(facts, after["planned"], after["committed"])]


def _marks_after(plan: Plan) -> dict[str, int | None]:
    """The marks when the steps are done: those that the new checkpoint is verified to have."""
    facts = plan.facts
    # Of several checkpoints the last one is switched in.
    verified = (action for action in reversed(plan.actions) if isinstance(action, VerifyGeneration))
    built = next(verified, None)
    if built is None or plan.request.into is not None:
        return {
            "planned": facts.planned,
            "committed": facts.committed,
            "state": facts.state,
            "written": facts.written,
        }
    planned = built.last if built.pending is None else built.pending
    cut = next((action.cut for action in plan.actions if isinstance(action, CutSink)), None)
    written = facts.written if cut is None else cut.after
    backfilled = next((action.batch for action in plan.actions if isinstance(action, RunBackfill)), None)
    if backfilled is not None and written is not None:
        written = backfilled
    return {"planned": planned, "committed": built.last, "state": built.state, "written": written}


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
        f"slackwater status {plan.stream} --verify",
        f"slackwater inspect {plan.stream} --operators",
        "slackwater ledger --operations",
        "```",
    ]


def _cost(plan: Plan) -> list[str]:
    cost = plan.cost
    if plan.goal == "backfill":
        return ["## Cost", "", "- One batch, which reads all of the range at once. Nothing is read again."]
    uncounted = f", and those of {cost.batches_uncounted} batches without a record" if cost.batches_uncounted else ""
    read = f"- {cost.batches_replayed:,} batches are run again, reading {cost.rows_read_again:,} rows{uncounted}"
    lines = ["## Cost", "", f"{read}; {cost.rows_recorded:,} rows are recorded in all."]
    if cost.batches_cut:
        lines.append(
            f"- {cost.batches_cut:,} batches are removed from the output ({cost.files_cut:,} files, "
            f"{cost.bytes_cut:,} bytes), and written again when the stream runs."
        )
    return lines


def _list(title: str, entries: tuple[str, ...]) -> Iterator[list[str]]:
    if entries:
        yield [f"## {title}", "", *(f"- {entry}" for entry in entries)]


def _before_undo(plan: Plan) -> tuple[str, ...]:
    possible = "at any time" if plan.request.into is not None else "until the stream has run again"
    return (
        "",
        f"Possible {possible}. If `slackwater apply` did the steps, this takes them back:",
        "",
        "```sh",
        undo_command(plan.id),
        "```",
        "",
        "By hand:",
    )
