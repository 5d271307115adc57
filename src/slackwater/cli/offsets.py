"""``slackwater offsets``: a stream's position for a manual restart, and what that would do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from slackwater.cli.arguments import (
    Format,
    Parser,
    add_format,
    add_home,
    add_stream,
    natural_or_none,
    shortened,
)
from slackwater.cli.console import err, prepare, print_json
from slackwater.errors import UsageError

if TYPE_CHECKING:
    from slackwater.app.offsets import At


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    add_stream(parser)
    parser.add_argument(
        "--at",
        metavar="POSITION",
        default="last-written",
        help="last-written (default), contributing (the first batch that still matters), or batch:N",
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "stdout has one JSON document for each source; stderr lists what would be lost or written twice."
    parser.set_defaults(verb=offsets)


def offsets(*, stream: str, at: str, home: str | None, shown_as: Format) -> int:
    """Work out the position and show it."""
    from slackwater.app.documents.offsets import offsets_document  # noqa: PLC0415 - light start
    from slackwater.app.offsets import offsets as position_of  # noqa: PLC0415
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.cli.render_offsets import messages, offset_lines  # noqa: PLC0415

    settings = prepare(home, shown_as)
    wanted = parse_at(at)
    with open_workspace(settings) as workspace:
        position = position_of(workspace, stream, wanted, lambda text: err().print(text, markup=False))
    if shown_as is Format.JSON:
        print_json(offsets_document(position))
        return 0
    for line in messages(position):
        err().print(line, markup=False, soft_wrap=True)
    for line in offset_lines(position):
        sys.stdout.write(f"{line}\n")
    return 0


def parse_at(text: str) -> At:
    """``last-written``, ``contributing`` or ``batch:N``. Raises UsageError for anything else."""
    from slackwater.app.offsets import At  # noqa: PLC0415 - light start

    if text == "last-written":
        return At("last-written")
    if text == "contributing":
        return At("contributing")
    number = natural_or_none(text.removeprefix("batch:")) if text.startswith("batch:") else None
    if number is not None:
        return At("batch", number)
    raise UsageError(
        "target",
        "A position cannot be parsed",
        expected="last-written, contributing or batch:N",
        found=shortened(text),
    )
