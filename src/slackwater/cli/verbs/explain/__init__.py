"""``slackwater explain``: the meaning of a code, its symptoms, and the remedy."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_format, string


def declare(parser: Parser) -> None:
    parser.add_argument(
        "code", metavar="CODE", nargs="?", type=string, help="code of a finding or an error (default: list all codes)"
    )
    add_format(parser)
    parser.epilog = "Nothing of a stream is read. The same texts are in docs/errors.md and docs/reference."
    parser.set_defaults(verb="slackwater.cli.verbs.explain.show:explain")


VERB = Verb(
    "Explain a code of a finding or an error: what it means, how it is recognised, and what to do.",
    declare=declare,
)
