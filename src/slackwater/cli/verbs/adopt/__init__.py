"""``slackwater adopt``: records a checkpoint of the user's own program."""

from __future__ import annotations

from slackwater.cli.common.arguments import (
    Parser,
    Verb,
    add_checkpoint,
    add_consent,
    add_format,
    add_home,
    add_spark,
    string,
)
from slackwater.core.commands import mention


def declare(parser: Parser) -> None:
    add_checkpoint(parser)
    parser.add_argument(
        "--name",
        metavar="NAME",
        type=string,
        help="the stream's name (default: the last part of --sink, else of LOCATION); "
        "a run of the program finds it by its checkpoint",
    )
    parser.add_argument(
        "--pipeline",
        metavar="FILE|MODULE",
        type=string,
        help="the program that starts the query, with its arguments ('app.py -- ARGUMENTS'): it is run up to the "
        "start of its queries, none of which is started, to see where the query writes",
    )
    add_spark(parser)
    add_home(parser)
    add_consent(parser)
    add_format(parser)
    parser.epilog = (
        "Nothing in the checkpoint and in the output is changed, and the query may run meanwhile. Repeated, it takes "
        f"in what is new. {mention('release')} forgets the stream."
    )
    parser.set_defaults(verb="slackwater.cli.verbs.adopt.take_in:adopt")


VERB = Verb("Record a checkpoint of a program that starts its own queries.", declare=declare)
