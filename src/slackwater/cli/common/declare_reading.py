"""The arguments of the verbs that only read: light to import, for ``--help`` and completion."""

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
)
from slackwater.core.commands import mention

ROWS_SHOWN = 20


def status(parser: Parser) -> None:
    parser.takes("stream", "STREAM", "only this one: stream, or pipeline/stream", nargs="?")
    parser.flag("--verify", "read every file that the marks depend on, not only the newest")
    parser.takes(
        "--watch",
        "INTERVAL",
        "repeat after each interval, such as 10s (default: %(const)s), until Ctrl-C",
        nargs="?",
        const="2s",
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "Nothing is changed. It works while the streams run, and on a machine without Java."


def doctor(parser: Parser) -> None:
    target = "a checkpoint's path or URI, or a stream's name (default: all streams of the home)"
    parser.takes("target", "LOCATION|STREAM", target, nargs="?")
    parser.flag("--all", "all streams of the home", dest="every")
    parser.takes("--sink", "URI", "the output of a checkpoint that Slackwater has not recorded")
    error = "the stack trace or log of a failed query, - for stdin; without a target only the text is explained"
    parser.takes("--error", "FILE|-", error)
    parser.flag("--verify", "read every file that the marks depend on, not only the newest")
    pipeline = "also compare the code in this pipeline with the kept state; starts Spark, but no query"
    parser.takes("--pipeline", "FILE|MODULE", pipeline)
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
    parser.takes(
        "--source",
        "N=ADDRESS",
        "the address of source N, which checkpoints lack: Kafka's bootstrap servers, or a folder; may be repeated",
        dest="sources",
        action="append",
    )
    parser.takes("--every", "INTERVAL", "how often to look (default: %(default)s)", default="2s")
    parser.flag("--once", "look once")
    add_format(parser)
    parser.epilog = (
        "Nothing is changed, and neither the program nor Spark is asked: only files are read, and the sources are "
        f"listed. It needs no home. Ctrl-C ends it. Streams that are recorded: {mention('status', '--watch')}."
    )


def evidence(parser: Parser) -> None:
    parser.takes("target", "LOCATION|STREAM", "a checkpoint's path or URI, or a stream's name")
    parser.takes("--out", "FILE.zip", "the bundle to write", path, required=True)
    add_force(parser)
    parser.takes("--sink", "URI", "the output of a checkpoint that Slackwater has not recorded")
    error = "the stack trace or log of a failed query, - for stdin: its causes are added, but not its text"
    parser.takes("--error", "FILE|-", error)
    parser.flag("--verify", "read every file that the marks depend on, not only the newest")
    pipeline = "also compare the code in this pipeline with the kept state; starts Spark, but no query"
    parser.takes("--pipeline", "FILE|MODULE", pipeline)
    messages = "add the error messages of runs, which may contain rows and unrecognised secrets"
    parser.flag("--messages", messages)
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
    parser.takes("target", "LOCATION|STREAM", "a checkpoint's path or URI, or a stream's name")
    parser.takes("--batch", "N", "show this batch, or the state after it", natural)
    parser.flag("--operators", "read and check all state and count its rows")
    parser.flag("--sources", "list what each source's own log holds")
    parser.flag("--conf", "show all pinned settings")
    parser.takes("--raw", "FILE", "show one file of the checkpoint as text")
    parser.takes("--state", "OP", "show state rows of an operator", natural)
    parser.takes("--store", "S", "with --state: the store or state variable")
    parser.takes("--side", "left|right", "with --state: a side of a join")
    parser.takes("--partition", "P", "with --state: only this partition", natural)
    parser.takes("--limit", "K", f"with --state: show at most K rows (default {ROWS_SHOWN})", natural)
    parser.takes("--max-bytes", "SIZE", "read at most SIZE of a file (default: by kind of file)", byte_size)
    parser.takes("--to", "FILE.parquet", "with --state: write all rows to this file", path)
    add_force(parser)
    add_home(parser)
    add_format(parser)
    parser.epilog = "Exit codes: 0 read, 3 read with damage, 4 not a checkpoint."


def offsets(parser: Parser) -> None:
    add_stream(parser)
    parser.takes(
        "--at",
        "POSITION",
        "last-written (default), contributing (the first batch that still matters), or batch:N",
        str,
        default="last-written",
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "stdout has one JSON document for each source; stderr lists what would be lost or written twice."


def ledger(parser: Parser) -> None:
    parser.takes("stream", "STREAM", "only this one, by its name or the location of its checkpoint", nargs="?")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--batches", metavar="A..B", help="these batches: 3..7, 3.., ..7, 5 (default: the newest 20)")
    shown.add_argument(
        "--operations", action="store_true", help="only operations, each with its commands to continue and undo"
    )
    add_home(parser)
    add_format(parser)
    parser.epilog = "A batch without a progress event was planned; its end is not recorded."


def explain(parser: Parser) -> None:
    parser.takes("code", "CODE", "code of a finding or an error (default: list all codes)", nargs="?")
    add_format(parser)
    parser.epilog = "Nothing of a stream is read. The same texts are in docs/errors.md and docs/reference."


def sinks(parser: Parser) -> None:
    add_format(parser)
    parser.epilog = "Nothing is read. The same table is in docs/sinks.md."
