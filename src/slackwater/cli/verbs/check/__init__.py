"""``slackwater check``: whether changed code may continue with existing state."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_debug, add_format, add_home, add_program, add_spark


def declare(parser: Parser) -> None:
    add_program(parser)
    add_spark(parser)
    add_home(parser)
    add_debug(parser)
    add_format(parser)
    parser.epilog = (
        "The DataFrames are built, and no query is started; nothing is written. Exit code 0: all streams may start, "
        "also those that were not compared because their plan or code cannot be read. "
        "1: a run would refuse a stream because of its changes."
    )
    parser.set_defaults(verb="slackwater.cli.verbs.check.compare:check")


VERB = Verb(
    "Compare changed code with the state that the streams have; nothing is started or written.",
    declare=declare,
)
