"""``slackwater doctor``: problems of a stream, with the risk and a safe remedy. Reads only."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_format, add_home, add_spark, string


def declare(parser: Parser) -> None:
    add = parser.add_argument
    target = "a checkpoint's path or URI, or a stream's name (default: all streams of the home)"
    add("target", metavar="LOCATION|STREAM", nargs="?", type=string, help=target)
    add("--all", dest="every", action="store_true", help="all streams of the home")
    add("--sink", metavar="URI", type=string, help="the output of a checkpoint that Slackwater has not recorded")
    error = "the stack trace or log of a failed query, - for stdin; without a target only the text is explained"
    add("--error", metavar="FILE|-", type=string, help=error)
    add("--verify", action="store_true", help="read every file that the marks depend on, not only the newest")
    pipeline = "compare the code in this pipeline with the kept state, too; starts Spark, and no query"
    add("--pipeline", metavar="FILE|MODULE", type=string, help=pipeline)
    add_spark(parser)
    add_home(parser)
    add_format(parser)
    parser.epilog = (
        "Nothing is changed. It works while the streams run, on checkpoints that Slackwater never ran, and without "
        "Java unless --pipeline is given. Exit code 0: healthy. 1: something was found. 5: not everything could be "
        "checked."
    )
    parser.set_defaults(verb="slackwater.cli.verbs.doctor.show:doctor")


VERB = Verb(
    "Diagnose streams and checkpoints: what is wrong, what is at stake, and which remedy is safe.",
    declare=declare,
)
