"""``slackwater status``: the state of the streams. Reads only."""

from __future__ import annotations

from slackwater.cli.arguments import Format, Parser, add_format, add_home, string
from slackwater.cli.console import out, prepare, print_json


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "stream", metavar="STREAM", nargs="?", type=string, help="only this one: stream, or pipeline/stream"
    )
    parser.add_argument(
        "--verify", action="store_true", help="read every file that the marks depend on, not only the newest"
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "Nothing is changed. It works while the streams run, and on a machine without Java."
    parser.set_defaults(verb=status)


def status(*, stream: str | None, verify: bool, home: str | None, shown_as: Format) -> int:
    """Read the state and show it."""
    from slackwater.app.documents.status import status_document  # noqa: PLC0415 - light start
    from slackwater.app.status import status as read_status  # noqa: PLC0415
    from slackwater.cli.render_status import status_page  # noqa: PLC0415

    found = read_status(prepare(home, shown_as), stream, verify=verify)
    if shown_as is Format.JSON:
        print_json(status_document(found))
    else:
        out().print(status_page(found), soft_wrap=True)
    return found.exit_code
