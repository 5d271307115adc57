"""``slackwater inspect``: the content of a checkpoint."""

from __future__ import annotations

from slackwater.cli.common.arguments import (
    Parser,
    Verb,
    add_force,
    add_format,
    add_home,
    byte_size,
    natural,
    path,
    string,
)

ROWS_SHOWN = 20


def declare(parser: Parser) -> None:
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
    add("--limit", type=natural, metavar="K", help=f"with --state: at most so many rows ({ROWS_SHOWN})")
    add("--max-bytes", type=byte_size, metavar="SIZE", help="take at most so much of a file (default: by kind of file)")
    add("--to", metavar="FILE.parquet", type=path, help="with --state: write all rows to this file")
    add_force(parser)
    add_home(parser)
    add_format(parser)
    parser.epilog = "Exit codes: 0 read, 3 read with damage, 4 not a checkpoint."
    parser.set_defaults(verb="slackwater.cli.verbs.inspect.show:inspect")


VERB = Verb(
    "Show what is in a checkpoint, without a JVM and without writing anything.",
    declare=declare,
)
