"""``slackwater audit``: crash drills on the sinks of a pipeline."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_debug, add_format, add_pipeline, path, string


def declare(parser: Parser) -> None:
    add_pipeline(parser)
    parser.add_argument(
        "--drill",
        dest="drills",
        metavar="before|line|job|task|twice|after",
        type=string,
        action="append",
        help="only this drill; may be repeated",
    )
    parser.add_argument(
        "--set",
        dest="variables",
        metavar="NAME=VALUE",
        action="append",
        help="an environment variable for the pipeline file; {run} becomes reference or drill, {folder} its folder",
    )
    parser.add_argument("--folder", type=path, help="work in this new or empty folder, and keep it")
    parser.add_argument("--conf", metavar="KEY=VALUE", action="append", help="a Spark setting; may be repeated")
    parser.add_argument("--yes", action="store_true", help="do not ask for the pipeline's name")
    add_debug(parser)
    add_format(parser)
    parser.epilog = (
        "It writes generated rows to the targets that the sinks name, twice; a target that holds rows is refused. "
        "Exit code 0: every drill was passed. 8: rows doubled or vanished, or a batch could not be written any more. "
        "5: a drill did not take place."
    )
    parser.set_defaults(verb="slackwater.cli.verbs.audit.report:audit")


VERB = Verb(
    "Run crash drills on the sinks of a pipeline file, and show which rows doubled or vanished.",
    declare=declare,
)
