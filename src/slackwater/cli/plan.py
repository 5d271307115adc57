"""``slackwater plan``: shows what would be done and changes nothing."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.cli.arguments import (
    Format,
    Parser,
    add_consent,
    add_debug,
    add_force,
    add_format,
    add_home,
    add_spark,
    add_stream,
    add_verbs,
    consent_of,
    natural_or_none,
    path,
    shortened,
    string,
)
from slackwater.cli.console import err, out, parse_conf, parse_seconds, prepare
from slackwater.errors import UsageError

if TYPE_CHECKING:
    from slackwater.model.finding import Goal
    from slackwater.model.plan import OutputTreatment, Plan

LAST_WRITTEN = "last-written"
EARLIEST = "earliest"


def declare(parser: Parser) -> None:
    """Declare the verbs: one for each goal."""
    add_verb = add_verbs(parser)
    _declare_resume(add_verb("resume", "Make the stream startable from the state it has; the least change that does."))
    _declare_rebuild(add_verb("rebuild", "Continue after the last written batch, with state recomputed."))
    _declare_replay(add_verb("replay", "Process the batches from a given one on again."))
    _declare_backfill(
        add_verb("backfill", "Process an older range that the stream never saw, while it keeps its place.")
    )
    _declare_reset(add_verb("reset", "Start again at a position of the sources, with empty state."))


def _declare_backfill(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument(
        "--from",
        dest="at",
        metavar="TARGET",
        default=EARLIEST,
        help=f"where the range starts: {EARLIEST} (default), time:2026-01-31T00:00Z, by:PT6H, shift:-1000, batch:N or "
        "offsets:FILE",
    )
    parser.add_argument(
        "--to",
        metavar="TARGET",
        help="where it ends, as --from; default: where batches have read on, or the stream is",
    )
    parser.add_argument(
        "--output",
        choices=("keep", "aside"),
        default="keep",
        help="keep (default): the rows are added to what the sink has; aside: they are written to files in the "
        "directory of --into, and the stream is not changed",
    )
    parser.add_argument(
        "--into", metavar="PATH", type=string, help="the directory of --output aside; it must be new or empty"
    )
    parser.add_argument("--only-source", metavar="NAME", type=string, help="the one source to read, as 0; default: all")
    add_spark(parser)
    _declare_common(parser)
    parser.set_defaults(goal="backfill", retention=None)


def _declare_reset(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument(
        "--from",
        dest="at",
        metavar="TARGET",
        default=EARLIEST,
        help=f"where to start: {EARLIEST} (default), latest, time:2026-01-31T00:00Z, by:PT6H, shift:-1000, batch:N, "
        f"{LAST_WRITTEN} or offsets:FILE",
    )
    parser.add_argument(
        "--output",
        choices=("swap", "clear", "keep"),
        default="swap",
        help="what becomes of what the sink has: swap (default) builds new output aside and replaces it when that has "
        "caught up; clear moves it to a backup at once; keep leaves it, and batches count on from its newest one",
    )
    parser.add_argument("--only-source", metavar="NAME", type=string, help="the one source to move, as 0; default: all")
    add_spark(parser)
    _declare_common(parser)
    parser.set_defaults(goal="reset", retention=None)


def _declare_resume(parser: Parser) -> None:
    add_stream(parser)
    _declare_common(parser)
    parser.set_defaults(goal="resume", at=LAST_WRITTEN, retention=None, output="cut", conf=None, master=None)


def _declare_rebuild(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument(
        "--at",
        metavar="POSITION",
        default=LAST_WRITTEN,
        help=f"{LAST_WRITTEN} (default), batch:N for an older written batch, or {EARLIEST} to process everything again",
    )
    _declare_retention(parser)
    _declare_common(parser)
    parser.set_defaults(goal="rebuild", output="cut")


def _declare_replay(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument(
        "--from",
        dest="at",
        metavar="TARGET",
        default=LAST_WRITTEN,
        help=f"the first batch to process again: batch:N, {EARLIEST}, {LAST_WRITTEN} (default) for that one alone; or "
        "the first that was planned since a time (time:2026-01-31T00:00Z, by:PT6H) or has read from a position on "
        "(shift:-1000, offsets:FILE)",
    )
    parser.add_argument(
        "--output",
        choices=("cut", "swap", "keep"),
        default="cut",
        help="what becomes of what the sink has of these batches: cut (default) moves it to a backup at once; swap "
        "builds new output aside and replaces all when that has caught up; keep leaves it, so that a sink that skips "
        "no batch gets their rows a second time",
    )
    _declare_retention(parser)
    _declare_common(parser)
    parser.set_defaults(goal="replay")


def _declare_retention(parser: Parser) -> None:
    parser.add_argument("--retention", metavar="2d", help="how far behind the watermark rows count, or 'all'")
    add_spark(parser)


def _declare_common(parser: Parser) -> None:
    parser.add_argument("--out", dest="file", metavar="PLAN", type=path, help="write the plan to this new file")
    parser.add_argument(
        "--export", metavar="RUNBOOK.md", type=path, help="write the steps for doing it by hand to this new file"
    )
    add_force(parser)
    parser.add_argument(
        "--pipeline",
        metavar="FILE|MODULE",
        type=string,
        help="the upgraded pipeline, if it moved; of a query that Slackwater only watches, a pipeline with its code",
    )
    parser.add_argument(
        "--downstream",
        action="store_true",
        help="plan the later stages, too, that have read what is taken out of the output; one apply, one undo",
    )
    add_home(parser)
    add_consent(parser)
    add_debug(parser)
    add_format(parser)
    parser.epilog = "Nothing is changed. The plan is for slackwater apply."
    parser.set_defaults(verb=plan, only_source=None, to=None, into=None)


def plan(
    *,
    goal: Goal,
    stream: str,
    at: str,
    output: OutputTreatment,
    file: Path | None,
    export: Path | None,
    force: bool,
    pipeline: str | None,
    downstream: bool,
    retention: str | None,
    only_source: str | None,
    to: str | None,
    into: str | None,
    master: str | None,
    conf: list[str] | None,
    home: str | None,
    moved: bool,
    copied: bool,
    debug: bool,
    shown_as: Format,
) -> int:
    """Make the plan, show it, and write it to a file if asked."""
    from slackwater.app.deriving import Asked  # noqa: PLC0415 - light start
    from slackwater.app.plan_goal import PlanOptions, plan_goal  # noqa: PLC0415
    from slackwater.app.user_files import PRIVATE, NewFile  # noqa: PLC0415
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.model.plan import Request  # noqa: PLC0415
    from slackwater.plan.document import render  # noqa: PLC0415
    from slackwater.plan.runbook import runbook  # noqa: PLC0415

    settings = prepare(home, shown_as, debug=debug)
    for target in (at,) if to is None else (at, to):
        check_target(goal, target)
    request = Request(
        at,
        _retention_ms(retention),
        query_read=True,
        output=output,
        only_source=only_source,
        starts=(),
        to=to,
        ends={},
        downstream=downstream,
        ranges="recorded",
        into=_side_output(output, into),
    )
    asked = Asked(goal, request, _absolute(pipeline))
    options = PlanOptions(parse_conf(conf), master, consent_of(moved=moved, copied=copied))
    # A plan quotes settings and paths: only its owner may read it.
    new = NewFile(file, force=force, mode=PRIVATE) if file is not None else None
    by_hand = NewFile(export, force=force, mode=PRIVATE) if export is not None else None
    for one in filter(None, (new, by_hand)):
        one.check()
    with open_workspace(settings, restore=True) as workspace:
        made = plan_goal(workspace, stream, asked, options, lambda text: err().print(text, markup=False))
    if new is not None:
        with new.open() as written:
            written.write(render(made).encode())
    if by_hand is not None:
        with by_hand.open() as written:
            written.write(runbook(made, workspace.home, str(file or f"{made.id}.json")).encode())
    if shown_as is Format.JSON:
        sys.stdout.write(render(made))
    else:
        _show(made, file, pipeline)
    return 0


def _show(made: Plan, file: Path | None, pipeline: str | None) -> None:
    from slackwater.cli.render_plan import plan_page  # noqa: PLC0415 - light start
    from slackwater.plan.words import plan_again, start_command  # noqa: PLC0415

    out().print(plan_page(made))
    if not made.actions:
        err().print(f"next: {start_command(made)}", markup=False)
        return
    if file is not None:
        hint = f"apply {shlex.quote(str(file))}"
    else:
        more = f" --pipeline {shlex.quote(pipeline)}" if pipeline is not None and made.facts.adopted is None else ""
        hint = f"{plan_again(made).removeprefix('slackwater ')}{more} --out {made.id}.json"
    err().print(f"next: slackwater {hint}", markup=False)


def check_target(goal: Goal, target: str) -> None:
    """Raises UsageError for what is no target of the goal."""
    if goal in {"reset", "backfill", "replay"}:
        from slackwater.plan.targets import parse_target  # noqa: PLC0415 - light start

        parse_target(target)
        return
    is_batch = target.startswith("batch:") and natural_or_none(target.removeprefix("batch:")) is not None
    if target not in {LAST_WRITTEN, EARLIEST} and not is_batch:
        raise UsageError(
            "target",
            "The goal has no such target",
            expected=f"{LAST_WRITTEN}, {EARLIEST} or batch:N",
            found=shortened(target),
            hint=f"slackwater plan {goal} --help",
        )


def _side_output(output: OutputTreatment, into: str | None) -> str | None:
    """The directory of a side output, absolute. Raises UsageError where it is missing or of no use."""
    if (output == "aside") != (into is not None):
        raise UsageError(
            "side-output",
            "--output aside and --into PATH are given together: the rows are written to this directory",
            expected="--output aside --into PATH, or neither",
            found=f"--output {output}" + (f" --into {into}" if into is not None else " without --into"),
            hint="slackwater plan backfill --help",
        )
    if into is None:
        return None
    from slackwater.app.side_place import absolute_path  # noqa: PLC0415 - light start

    return absolute_path(into)


def _retention_ms(text: str | None) -> int | None:
    if text is None:
        return None
    from slackwater.plan.words import ALL, ALL_MS  # noqa: PLC0415 - light start

    return ALL_MS if text == ALL else int(parse_seconds(text) * 1000)


def _absolute(reference: str | None) -> str | None:
    from slackwater.app.user_files import is_file  # noqa: PLC0415 - light start

    return reference if reference is None or not is_file(reference) else str(Path(reference).absolute())
