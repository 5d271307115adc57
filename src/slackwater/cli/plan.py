"""``slackwater plan``: shows what would be done; changes nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from slackwater.cli.arguments import Format, Parser, add_format, add_home, add_stream, add_verbs
from slackwater.cli.console import err, out, parse_seconds, prepare
from slackwater.errors import UsageError

LAST_WRITTEN = "last-written"


def declare(parser: Parser) -> None:
    """Its verbs: one for each remedy."""
    add_verb = add_verbs(parser)
    _declare_rebuild(add_verb("rebuild", "Go on from the last written batch, with state made anew."))


def _declare_rebuild(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument(
        "--at",
        metavar="POSITION",
        default=LAST_WRITTEN,
        help=f"{LAST_WRITTEN} (default), or batch:N for an older written batch",
    )
    parser.add_argument("--out", dest="file", metavar="PLAN", type=Path, help="write the plan to this file")
    parser.add_argument("--pipeline", metavar="FILE|MODULE", help="the upgraded pipeline, if it moved")
    parser.add_argument("--retention", metavar="2d", help="how far behind the watermark rows count, or 'all'")
    add_home(parser)
    add_format(parser)
    parser.epilog = "Nothing is changed. The plan is for slackwater apply."
    parser.set_defaults(verb=rebuild)


def rebuild(
    *,
    stream: str,
    at: str,
    file: Path | None,
    pipeline: str | None,
    retention: str | None,
    home: str | None,
    shown_as: Format,
) -> int:
    """Make the plan, show it, and write it down where asked."""
    from slackwater.app.plan_rebuild import RebuildOptions, plan_rebuild  # noqa: PLC0415 - light start
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.cli.render_plan import plan_page  # noqa: PLC0415
    from slackwater.plan.document import render  # noqa: PLC0415

    settings = prepare(home, shown_as)
    options = RebuildOptions(parse_batch(at), _retention_ms(retention), _absolute(pipeline))
    with open_workspace(settings) as workspace:
        plan = plan_rebuild(workspace, stream, options, lambda text: err().print(text, markup=False))
    if file is not None:
        _write(file, render(plan))
    if shown_as is Format.JSON:
        sys.stdout.write(render(plan))
        return 0
    out().print(plan_page(plan))
    hint = f"slackwater apply {file}" if file is not None else f"slackwater plan rebuild {plan.stream} --out plan.json"
    err().print(f"next: {hint}", markup=False)
    return 0


def parse_batch(text: str) -> int | None:
    """``batch:N`` as N, ``last-written`` as ``None``. Raises UsageError for another target."""
    if text == LAST_WRITTEN:
        return None
    number = text.removeprefix("batch:")
    if number != text and number.isascii() and number.isdigit():
        return int(number)
    raise UsageError(
        "target", "A rebuild cannot be planned for this target", expected="last-written or batch:N", found=text
    )


def _retention_ms(text: str | None) -> int | None:
    if text is None:
        return None
    # A thousand years: further back than any event time, so that all batches contribute.
    return 1000 * 366 * 86_400_000 if text == "all" else int(parse_seconds(text) * 1000)


def _absolute(reference: str | None) -> str | None:
    if reference is None or not Path(reference).is_file():
        return reference
    return str(Path(reference).absolute())


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError("out-unwritable", f"The plan cannot be written: {error}", where=str(file)) from error
