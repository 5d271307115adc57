"""``slackwater ledger``: what is remembered of streams, generations, runs, operations and batches. Reads only."""

from __future__ import annotations

from typing import Annotated

import typer

from slackwater.cli.console import Format, FormatOption, HomeOption, out, prepare, print_json
from slackwater.errors import UsageError

WIDE = 1000
"""Tables that go to a file or a pipe are as wide as their longest line."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ledger", help="Show what the ledger remembers of streams, runs, operations and batches.")(ledger)


def ledger(
    stream: Annotated[str | None, typer.Argument(metavar="[STREAM]", help="Only this one, with its batches.")] = None,
    batches: Annotated[
        str | None,
        typer.Option("--batches", metavar="A..B", help="These batches: 3..7, 3.., ..7, 5 (default: the newest 20)."),
    ] = None,
    home: HomeOption = None,
    shown_as: FormatOption = Format.TEXT,
) -> None:
    """A batch without a progress event was planned, and nobody was told that it ended."""
    from slackwater.app.ledger_view import ledger_view, parse_range  # noqa: PLC0415 - light start
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.cli.render_ledger import ledger_document, ledger_page  # noqa: PLC0415

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
