"""``slackwater stop``: asks a run in another process to end between two batches."""

from __future__ import annotations

from slackwater.cli.arguments import Format, Parser, add_format, add_home, add_stream
from slackwater.cli.console import err, out, parse_seconds, prepare, print_json
from slackwater.errors import OutcomeUnknown


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    add_stream(parser)
    parser.add_argument("--wait", metavar="60s", default="60s", help="how long to wait for the end (default: 60s)")
    add_home(parser)
    add_format(parser)
    parser.epilog = (
        "Exit code 0: the run has ended. 6: the run had not ended within --wait; it will end after its batch."
    )
    parser.set_defaults(verb=stop)


def stop(*, stream: str, wait: str, home: str | None, shown_as: Format) -> int:
    """Request the stop and wait for the end."""
    from slackwater.app.documents.stop import stop_document  # noqa: PLC0415 - light start
    from slackwater.app.stop_stream import stop_stream  # noqa: PLC0415
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415

    settings, wait_s = prepare(home, shown_as), parse_seconds(wait)
    with open_workspace(settings) as workspace:
        stopped = stop_stream(workspace, stream, wait_s, lambda text: err().print(text, markup=False))
    if stopped.ended is None:
        raise OutcomeUnknown(
            "stop-pending",
            f"Stream {stopped.stream} was asked to stop and had not ended after {wait_s:g} s; it ends after its batch",
            hint=f"slackwater status {stopped.stream}; or wait again: slackwater stop {stopped.stream} --wait 10m",
        )
    if shown_as is Format.JSON:
        print_json(stop_document(stopped))
    else:
        out().print(f"{stopped.stream}: {stopped.ended}", markup=False)
    return 0
