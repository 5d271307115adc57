"""The arguments of the verbs that only read: light to import, for ``--help`` and completion."""

from __future__ import annotations

from slackwater.cli.common.arguments import (
    Parser,
    add_checkpoint,
    add_force,
    add_format,
    add_home,
    add_spark,
    add_stream,
    byte_size,
    natural,
    path,
    string,
)
from slackwater.core.commands import mention

ROWS_SHOWN = 20


def status(parser: Parser) -> None:
    parser.add_argument(
        "stream", metavar="STREAM", nargs="?", type=string, help="only this one: stream, or pipeline/stream"
    )
    parser.add_argument(
        "--verify", action="store_true", help="read every file that the marks depend on, not only the newest"
    )
    parser.add_argument(
        "--watch",
        metavar="INTERVAL",
        type=string,
        nargs="?",
        const="2s",
        help="show it again after each interval, such as 10s (default: %(const)s), until Ctrl-C",
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "Nothing is changed. It works while the streams run, and on a machine without Java."


def doctor(parser: Parser) -> None:
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


def watch(parser: Parser) -> None:
    add_checkpoint(parser)
    add = parser.add_argument
    add(
        "--source",
        dest="sources",
        metavar="N=ADDRESS",
        type=string,
        action="append",
        help="where source N is, which a checkpoint does not have: Kafka's bootstrap servers, or a folder; "
        "may be repeated",
    )
    add("--every", metavar="INTERVAL", type=string, default="2s", help="how often to look (default: %(default)s)")
    add("--once", action="store_true", help="look once")
    add_format(parser)
    parser.epilog = (
        "Nothing is changed, and neither the program nor Spark is asked: only files are read, and the sources are "
        f"listed. It needs no home. Ctrl-C ends it. Streams that are recorded: {mention('status', '--watch')}."
    )


def evidence(parser: Parser) -> None:
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


def inspect(parser: Parser) -> None:
    add = parser.add_argument
    add("target", metavar="LOCATION|STREAM", type=string, help="a checkpoint's path or URI, or a stream's name")
    add("--batch", type=natural, metavar="N", help="show this batch, or the state after it")
    add("--operators", action="store_true", help="read and check all state and count its rows")
    add("--sources", action="store_true", help="list what each source's own log holds")
    add("--conf", action="store_true", help="show all pinned settings")
    add("--raw", metavar="FILE", type=string, help="show one file of the checkpoint as text")
    add("--state", type=natural, metavar="OP", help="show state rows of an operator")
    add("--store", metavar="S", type=string, help="with --state: the store or state variable")
    add("--side", metavar="left|right", type=string, help="with --state: a side of a join")
    add("--partition", type=natural, metavar="P", help="with --state: only this partition")
    add("--limit", type=natural, metavar="K", help=f"with --state: show at most K rows (default {ROWS_SHOWN})")
    add("--max-bytes", type=byte_size, metavar="SIZE", help="read at most SIZE of a file (default: by kind of file)")
    add("--to", metavar="FILE.parquet", type=path, help="with --state: write all rows to this file")
    add_force(parser)
    add_home(parser)
    add_format(parser)
    parser.epilog = "Exit codes: 0 read, 3 read with damage, 4 not a checkpoint."


def offsets(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument(
        "--at",
        metavar="POSITION",
        default="last-written",
        help="last-written (default), contributing (the first batch that still matters), or batch:N",
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "stdout has one JSON document for each source; stderr lists what would be lost or written twice."


def ledger(parser: Parser) -> None:
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


def explain(parser: Parser) -> None:
    parser.add_argument(
        "code", metavar="CODE", nargs="?", type=string, help="code of a finding or an error (default: list all codes)"
    )
    add_format(parser)
    parser.epilog = "Nothing of a stream is read. The same texts are in docs/errors.md and docs/reference."


def sinks(parser: Parser) -> None:
    add_format(parser)
    parser.epilog = "Nothing is read. The same table is in docs/sinks.md."
