"""``slackwater undo``: undoes an operation."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_consent, add_format, add_home, add_stopped, string
from slackwater.core.commands import command
from slackwater.core.commands import mention as mention


def declare(parser: Parser) -> None:
    parser.add_argument(
        "operation",
        metavar="OPERATION",
        type=string,
        help=f"the operation's id; {command('ledger', 'STREAM')} lists them",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for the stream's name")
    add_stopped(parser)
    add_home(parser)
    add_consent(parser)
    add_format(parser)
    parser.epilog = "Each step is journaled: an interrupted undo is continued by running it again."
    parser.set_defaults(verb="slackwater.cli.verbs.undo.confirmed_undo:undo")


VERB = Verb("Undo an operation, also a partially applied one.", declare=declare)
