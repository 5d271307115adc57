"""``slackwater status``: where the streams stand. Reads only."""

from __future__ import annotations

from typing import Annotated

import typer

from slackwater.cli.console import Format, FormatOption, HomeOption, out, prepare, print_json


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("status", help="Show where the streams stand, who runs them, and what comes next.")(status)


def status(
    stream: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="Only this one: stream, or pipeline/stream.")
    ] = None,
    home: HomeOption = None,
    shown_as: FormatOption = Format.TEXT,
) -> None:
    """Nothing is changed. It works while the streams run, and on a machine without Java."""
    from slackwater.app.status import status as look  # noqa: PLC0415 - light start
    from slackwater.cli.render_status import status_document, status_page  # noqa: PLC0415

    found = look(prepare(home, shown_as), stream)
    if shown_as is Format.JSON:
        print_json(status_document(found))
    else:
        out().print(status_page(found), soft_wrap=True)
