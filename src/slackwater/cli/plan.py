"""``slackwater plan``: shows what would be done and changes nothing."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

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

LAST_WRITTEN = "last-written"
EARLIEST = "earliest"


def declare(parser: Parser) -> None:
    """Declare the verbs: one for each remedy."""
    add_verb = add_verbs(parser)
    _declare_rebuild(add_verb("rebuild", "Continue after the last written batch, with state recomputed."))


def _declare_rebuild(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument(
        "--at",
        metavar="POSITION",
        default=LAST_WRITTEN,
        help=f"{LAST_WRITTEN} (default), batch:N for an older written batch, or {EARLIEST} to process everything again",
    )
    parser.add_argument("--out", dest="file", metavar="PLAN", type=path, help="write the plan to this new file")
    add_force(parser)
    parser.add_argument("--pipeline", metavar="FILE|MODULE", type=string, help="the upgraded pipeline, if it moved")
    parser.add_argument("--retention", metavar="2d", help="how far behind the watermark rows count, or 'all'")
    add_spark(parser)
    add_home(parser)
    add_consent(parser)
    add_debug(parser)
    add_format(parser)
    parser.epilog = "Nothing is changed. The plan is for slackwater apply."
    parser.set_defaults(verb=rebuild)


def rebuild(
    *,
    stream: str,
    at: str,
    file: Path | None,
    force: bool,
    pipeline: str | None,
    retention: str | None,
    master: str | None,
    conf: list[str] | None,
    home: str | None,
    moved: bool,
    copied: bool,
    debug: bool,
    shown_as: Format,
) -> int:
    """Make the plan, show it, and write it to a file if asked."""
    from slackwater.app.plan_rebuild import PlanOptions, plan_rebuild  # noqa: PLC0415 - light start
    from slackwater.app.rebuilding import Asked  # noqa: PLC0415
    from slackwater.app.user_files import PRIVATE, NewFile  # noqa: PLC0415
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.cli.render_plan import plan_page  # noqa: PLC0415
    from slackwater.model.plan import Request  # noqa: PLC0415
    from slackwater.plan.document import render  # noqa: PLC0415

    settings = prepare(home, shown_as, debug=debug)
    check_target(at)
    asked = Asked(Request(at, _retention_ms(retention), query_read=True), _absolute(pipeline))
    options = PlanOptions(parse_conf(conf), master, consent_of(moved=moved, copied=copied))
    # A plan quotes settings and paths: only its owner may read it.
    new = NewFile(file, force=force, mode=PRIVATE) if file is not None else None
    if new is not None:
        new.check()
    with open_workspace(settings, restore=True) as workspace:
        plan = plan_rebuild(workspace, stream, asked, options, lambda text: err().print(text, markup=False))
    if new is not None:
        with new.open() as written:
            written.write(render(plan).encode())
    if shown_as is Format.JSON:
        sys.stdout.write(render(plan))
        return 0
    out().print(plan_page(plan))
    options_given = {"--at": at, "--retention": retention, "--pipeline": pipeline, "--out": f"{plan.id}.json"}
    again = " ".join(f"{name} {shlex.quote(value)}" for name, value in options_given.items() if value is not None)
    hint = f"apply {shlex.quote(str(file))}" if file is not None else f"plan rebuild {plan.stream} {again}"
    err().print(f"next: slackwater {hint}", markup=False)
    return 0


def check_target(target: str) -> None:
    """Raises UsageError for what is no target of a rebuild."""
    is_batch = target.startswith("batch:") and natural_or_none(target.removeprefix("batch:")) is not None
    if target not in {LAST_WRITTEN, EARLIEST} and not is_batch:
        raise UsageError(
            "target",
            "A rebuild cannot be planned for this target",
            expected=f"{LAST_WRITTEN}, {EARLIEST} or batch:N",
            found=shortened(target),
            hint="slackwater plan rebuild --help",
        )


def _retention_ms(text: str | None) -> int | None:
    if text is None:
        return None
    from slackwater.plan.words import ALL, ALL_MS  # noqa: PLC0415 - light start

    return ALL_MS if text == ALL else int(parse_seconds(text) * 1000)


def _absolute(reference: str | None) -> str | None:
    from slackwater.app.user_files import is_file  # noqa: PLC0415 - light start

    return reference if reference is None or not is_file(reference) else str(Path(reference).absolute())
