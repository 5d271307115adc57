"""``slackwater prune``: deletes old generations of checkpoints and what only their undo needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.cli.apply import confirm
from slackwater.cli.arguments import Format, Parser, add_consent, add_format, add_home, consent_of, natural, string
from slackwater.cli.console import err, out, prepare, print_json

if TYPE_CHECKING:
    from slackwater.app.prune import Prunable


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    parser.add_argument("stream", metavar="STREAM", nargs="?", type=string, help="only this one (default: all)")
    parser.add_argument(
        "--keep",
        metavar="N",
        type=natural,
        required=True,
        help="how many generations to keep beside the one in use",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_home(parser)
    add_consent(parser)
    add_format(parser)
    parser.epilog = (
        "What was deleted cannot be restored, and an operation whose old generation was deleted cannot be undone. "
        "A running stream is not disturbed. An interrupted prune is finished by the next one."
    )
    parser.set_defaults(verb=prune)


def prune(
    *, stream: str | None, keep: int, yes: bool, home: str | None, moved: bool, copied: bool, shown_as: Format
) -> int:
    """Show what will be deleted, have it confirmed, delete it."""
    from slackwater.app import prune as pruning  # noqa: PLC0415 - light start
    from slackwater.app.documents.prune import prune_document  # noqa: PLC0415
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415

    settings = prepare(home, shown_as, logging=True)
    with open_workspace(settings, restore=True) as workspace:
        found = pruning.prunable(workspace, stream, keep)
        if found and not yes:
            for one in found:
                err().print(_line(one, "would delete"), markup=False)
            confirm(found[0].stream if len(found) == 1 else "all", "delete them")
        removed = pruning.prune(
            workspace,
            stream,
            keep,
            lambda text: err().print(text, markup=False),
            consent_of(moved=moved, copied=copied),
        )
    if shown_as is Format.JSON:
        print_json(prune_document(removed))
        return 0
    for one in removed:
        out().print(_line(one, "deleted"), markup=False)
    if not removed:
        out().print("nothing to delete", markup=False)
    return 0


def _line(one: Prunable, verb: str) -> str:
    generations = ", ".join(map(str, one.generations)) or "none"
    undo = f"; no longer to be undone: {', '.join(one.operations)}" if one.operations else ""
    return f"{one.stream}: {verb} {len(one.folders)} folders, {one.bytes:,} bytes; generations {generations}{undo}"
