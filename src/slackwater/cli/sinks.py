"""``slackwater sinks``: which sinks there are, and what each guarantees."""

from __future__ import annotations

from slackwater.cli.arguments import Format, Parser, add_format
from slackwater.cli.console import out, print_json


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    add_format(parser)
    parser.epilog = "Nothing is read. The same table is in docs/sinks.md."
    parser.set_defaults(verb=sinks)


def sinks(*, shown_as: Format) -> int:
    """Show the catalogue."""
    from slackwater.app.documents.sinks import sinks_document  # noqa: PLC0415 - light start
    from slackwater.app.list_sinks import list_sinks  # noqa: PLC0415
    from slackwater.cli.render_sinks import sinks_page  # noqa: PLC0415

    entries = list_sinks()
    if shown_as is Format.JSON:
        print_json(sinks_document(entries))
    else:
        out().print(sinks_page(entries), soft_wrap=True)
    return 0
