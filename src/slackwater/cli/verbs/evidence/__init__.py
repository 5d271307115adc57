"""``slackwater evidence``: all facts of a stream in a file, before anybody reruns or deletes. Reads only."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_force, add_format, add_home, add_spark, path, string


def declare(parser: Parser) -> None:
    add = parser.add_argument
    add("target", metavar="LOCATION|STREAM", type=string, help="a checkpoint's path or URI, or a stream's name")
    add("--out", metavar="FILE.zip", type=path, required=True, help="the bundle to write")
    add_force(parser)
    add("--sink", metavar="URI", type=string, help="the output of a checkpoint that Slackwater has not recorded")
    error = "the stack trace or log of a failed query, - for stdin: its causes are added, and not its text"
    add("--error", metavar="FILE|-", type=string, help=error)
    add("--verify", action="store_true", help="read every file that the marks depend on, not only the newest")
    pipeline = "compare the code in this pipeline with the kept state, too; starts Spark, and no query"
    add("--pipeline", metavar="FILE|MODULE", type=string, help=pipeline)
    messages = "add the error messages of runs, which can quote rows and secrets that no rule recognises"
    add("--messages", action="store_true", help=messages)
    add_spark(parser)
    add_home(parser)
    add_format(parser)
    parser.epilog = (
        "Nothing but the bundle is written: a page that opens without a network, the same as JSON, and a README. "
        "It holds no secrets and no rows, unless --messages is given: error messages are texts of others. "
        "It works while the stream runs, on checkpoints "
        "that Slackwater never ran, and without a ledger. Exit code 0: the bundle was written, whatever was found."
    )
    parser.set_defaults(verb="slackwater.cli.verbs.evidence.bundle:evidence")


VERB = Verb(
    "Pack what is known of a stream into one file for a colleague: a page and JSON, no rows, no secrets.",
    declare=declare,
)
