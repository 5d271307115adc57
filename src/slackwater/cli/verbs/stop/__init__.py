"""``slackwater stop``: asks a run in another process to end between two batches."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_format, add_home, add_stream


def declare(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument("--wait", metavar="60s", default="60s", help="how long to wait for the end (default: 60s)")
    add_home(parser)
    add_format(parser)
    parser.epilog = (
        "Exit code 0: the run has ended. 6: the run had not ended within --wait and will end after its batch, or the "
        "stream was between two starts and was not asked."
    )
    parser.set_defaults(verb="slackwater.cli.verbs.stop.stop_run:stop")


VERB = Verb("Let a running stream finish its batch and end.", declare=declare)
