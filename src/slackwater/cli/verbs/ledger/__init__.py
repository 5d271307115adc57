"""``slackwater ledger``: the records of streams, generations, runs, operations and batches. Reads only."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_format, add_home, string


def declare(parser: Parser) -> None:
    parser.add_argument(
        "stream",
        metavar="STREAM",
        nargs="?",
        type=string,
        help="only this one, by its name or the location of its checkpoint",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--batches",
        metavar="A..B",
        help="these batches: 3..7, 3.., ..7, 5 (default: the newest 20)",
    )
    shown.add_argument(
        "--operations",
        action="store_true",
        help="only operations, each with the commands that continue and undo it",
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "A batch without a progress event was planned; its end is not recorded."
    parser.set_defaults(verb="slackwater.cli.verbs.ledger.streams:ledger")


VERB = Verb(
    "Show what the ledger records of streams, runs, operations and batches.",
    declare=declare,
)
