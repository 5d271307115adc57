"""``slackwater apply``: applies a plan."""

from __future__ import annotations

from slackwater.cli.common.arguments import (
    Parser,
    Verb,
    add_consent,
    add_debug,
    add_format,
    add_home,
    add_spark,
    add_stopped,
    path_or_uri,
    string,
)
from slackwater.core.commands import command as command
from slackwater.core.commands import mention


def declare(parser: Parser) -> None:
    parser.add_argument(
        "plan_file", metavar="PLAN", type=path_or_uri, help=f"a file written by {mention('plan')} ... --out"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for the stream's name")
    parser.add_argument(
        "--confirm",
        metavar="NAME",
        type=string,
        help="the stream's name; a plan that clears the output, or keeps rows that its marker does not show, needs it",
    )
    parser.add_argument(
        "--discard-others",
        metavar="NAME",
        type=string,
        help="the stream's name; what others have written to the output may go with what the plan takes out of it",
    )
    add_stopped(parser)
    add_spark(parser)
    add_home(parser)
    add_consent(parser)
    add_debug(parser)
    add_format(parser)
    parser.epilog = "Each step is journaled: an interrupted apply is continued by running it again."
    parser.set_defaults(verb="slackwater.cli.verbs.apply.confirmed:apply")


VERB = Verb("Apply a plan; refuses if anything changed since it was made.", declare=declare)
