"""``slackwater status``: the state of the streams. Reads only."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_format, add_home, string


def declare(parser: Parser) -> None:
    parser.add_argument(
        "stream", metavar="STREAM", nargs="?", type=string, help="only this one: stream, or pipeline/stream"
    )
    parser.add_argument(
        "--verify", action="store_true", help="read every file that the marks depend on, not only the newest"
    )
    parser.add_argument(
        "--watch",
        metavar="INTERVAL",
        type=string,
        nargs="?",
        const="2s",
        help="show it again after each interval, such as 10s (default: %(const)s), until Ctrl-C",
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "Nothing is changed. It works while the streams run, and on a machine without Java."
    parser.set_defaults(verb="slackwater.cli.verbs.status.read_status:status")


VERB = Verb("Show the state of the streams, who runs them, and the next command.", declare=declare)
