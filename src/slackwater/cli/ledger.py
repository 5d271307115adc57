"""``slackwater ledger``: what is recorded of streams, generations, runs, operations and batches. Reads only."""

from __future__ import annotations

from slackwater.cli.arguments import Format, Parser, add_format, add_home, string
from slackwater.cli.console import out, prepare, print_json
from slackwater.errors import UsageError

WIDE = 1000
"""Tables that go to a file or a pipe are as wide as their longest line."""


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    parser.add_argument("stream", metavar="STREAM", nargs="?", type=string, help="only this one, with its batches")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--batches",
        metavar="A..B",
        help="these batches: 3..7, 3.., ..7, 5 (default: the newest 20)",
    )
    shown.add_argument(
        "--operations",
        action="store_true",
        help="only operations, each with the commands that continue and undo it",
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "A batch without a progress event was planned; its end is not recorded."
    parser.set_defaults(verb=ledger)


def ledger(*, stream: str | None, batches: str | None, operations: bool, home: str | None, shown_as: Format) -> int:
    """Read the ledger and show it."""
    if operations:
        return _operations(stream, home, shown_as)
    from slackwater.app.documents.ledger import ledger_document  # noqa: PLC0415 - light start
    from slackwater.app.ledger_view import ledger_view, parse_range  # noqa: PLC0415
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.cli.render_ledger import ledger_page  # noqa: PLC0415

    settings = prepare(home, shown_as)
    if batches is not None and stream is None:
        raise UsageError(
            "batches-of-what", "--batches needs a stream", hint=f"slackwater ledger STREAM --batches {batches}"
        )
    wanted = parse_range(batches) if batches is not None else None
    with open_workspace(settings) as workspace:
        views, place = ledger_view(workspace, stream, wanted), workspace.ledger.place
    if shown_as is Format.JSON:
        print_json(ledger_document(views, place))
    else:
        out(width_of_files=WIDE).print(ledger_page(views, place))
    return 0


def _operations(stream: str | None, home: str | None, shown_as: Format) -> int:
    from slackwater.app.documents.operations import operations_document  # noqa: PLC0415 - light start
    from slackwater.app.operations_view import operations_view  # noqa: PLC0415
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.cli.render_operations import operations_page  # noqa: PLC0415

    with open_workspace(prepare(home, shown_as)) as workspace:
        views, place = operations_view(workspace, stream), workspace.ledger.place
    if shown_as is Format.JSON:
        print_json(operations_document(views, place))
    else:
        out(width_of_files=WIDE).print(operations_page(views, place))
    return 0
