"""``slackwater release``: forgets a stream of the user's own program; the checkpoint stays."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_consent, add_format, add_home, add_stopped, add_stream


def declare(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_home(parser)
    add_consent(parser)
    add_stopped(parser)
    add_format(parser)
    parser.epilog = (
        "The checkpoint and the rows of the output are not changed: the program continues without Slackwater. Ranges "
        "of batches that the checkpoint no longer has are lost. An interrupted release is finished by the next one."
    )
    parser.set_defaults(verb="slackwater.cli.verbs.release.forget:release")


VERB = Verb("Forget a stream of a program that starts its own queries.", declare=declare)
