"""``slackwater watch``: marks and lag of any checkpoint, live. Reads only."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_checkpoint, add_format, string
from slackwater.core.commands import mention


def declare(parser: Parser) -> None:
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
    parser.set_defaults(verb="slackwater.cli.verbs.watch.look:watch")


VERB = Verb("Show the marks and the lag of any checkpoint while its query runs.", declare=declare)
