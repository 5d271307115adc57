"""``slackwater offsets``: a position for a manual restart, and its effects."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_format, add_home, add_stream


def declare(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument(
        "--at",
        metavar="POSITION",
        default="last-written",
        help="last-written (default), contributing (the first batch that still matters), or batch:N",
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "stdout has one JSON document for each source; stderr lists what would be lost or written twice."
    parser.set_defaults(verb="slackwater.cli.verbs.offsets.position:offsets")


VERB = Verb(
    "Print where a new query would start reading, as Kafka's startingOffsets.",
    declare=declare,
)
