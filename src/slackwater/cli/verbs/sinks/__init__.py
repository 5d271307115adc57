"""``slackwater sinks``: the sinks, and their guarantees."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_format


def declare(parser: Parser) -> None:
    add_format(parser)
    parser.epilog = "Nothing is read. The same table is in docs/sinks.md."
    parser.set_defaults(verb="slackwater.cli.verbs.sinks.catalogue:sinks")


VERB = Verb(
    "List the sinks: what each guarantees and why, its output modes, and what a rebuild can do with it.",
    declare=declare,
)
