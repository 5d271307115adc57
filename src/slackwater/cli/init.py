"""``slackwater init``: lays out an example project with input data."""

from __future__ import annotations

import sys
from pathlib import Path

from slackwater.cli.arguments import Format, Parser, add_format, path
from slackwater.cli.console import prepare, print_json


def declare(parser: Parser) -> None:
    """Declare the folder and the output format."""
    parser.add_argument("folder", metavar="DIR", type=path, help="a new or empty folder")
    add_format(parser)
    parser.epilog = "Exit code 5: the folder holds something; nothing was changed. No network and no Java are needed."
    parser.set_defaults(verb=init)


def init(*, folder: Path, shown_as: Format) -> int:
    """Lay out the project and print what it holds and the next commands."""
    from slackwater.app.init_project import init_project  # noqa: PLC0415 - light start

    prepare(None, shown_as)
    project = init_project(folder)
    if shown_as is Format.JSON:
        contents = [{"path": laid.path, "what": laid.what} for laid in project.contents]
        document = {"folder": project.folder, "contents": contents, "next": list(project.next)}
        print_json({"schema": "slackwater.init/1", **document})
        return 0
    width = max(len(laid.path) for laid in project.contents)
    sys.stdout.write("".join(f"{laid.path:<{width}}  {laid.what}\n" for laid in project.contents))
    sys.stderr.write("".join(f"next: {command}\n" for command in project.next))
    return 0
