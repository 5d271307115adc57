"""The arguments of the verbs that start, change or make something: light to import, for ``--help`` and completion."""

from __future__ import annotations

import argparse
import re
from argparse import ArgumentTypeError
from enum import StrEnum

from slackwater.cli.common.arguments import (
    Parser,
    add_checkpoint,
    add_consent,
    add_debug,
    add_force,
    add_format,
    add_home,
    add_pipeline,
    add_program,
    add_spark,
    add_stopped,
    add_stream,
    add_verbs,
    natural,
    one_of,
    path,
    path_or_uri,
    string,
)
from slackwater.core.commands import command, mention
from slackwater.operations.goals.goal import GOALS, goal_named

PORTS = range(65_536)
_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,2}")


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Source(StrEnum):
    FILES = "files"
    KAFKA = "kafka"


class Sink(StrEnum):
    FILES = "files"
    POSTGRES = "postgres"


def init(parser: Parser) -> None:
    parser.add_argument("folder", metavar="DIR", type=path, help="a new or empty folder")
    add_format(parser)
    parser.epilog = "Exit code 5: the folder holds something; nothing was changed. No network and no Java are needed."


def _port(text: str) -> int:
    """A port; 0 lets the system choose."""
    port = natural(text)
    if port not in PORTS:
        raise ArgumentTypeError(f"expected a port from 0 to {PORTS[-1]}; found {port}")
    return port


def run(parser: Parser) -> None:
    add_program(parser)
    parser.add_argument(
        "--until-caught-up", action="store_true", help="process all available input, stage after stage, then end"
    )
    parser.add_argument("--for", dest="duration", metavar="60s", help="drain and end after this time")
    parser.add_argument(
        "--accept",
        dest="accepted",
        metavar="CODE",
        type=string,
        action="append",
        help=f"start although the code was changed in this way (see {mention('check')}); may be repeated",
    )
    parser.add_argument(
        "--metrics-port",
        metavar="PORT",
        type=_port,
        help="serve Prometheus metrics of the streams at this port while they run; 0: a free one",
    )
    parser.add_argument(
        "--metrics-host",
        metavar="ADDRESS",
        type=string,
        default="127.0.0.1",
        help="the address to serve them at (default: %(default)s, this machine only)",
    )
    add_spark(parser)
    add_home(parser)
    add_consent(parser)
    add_debug(parser)
    parser.epilog = (
        "Ctrl-C or SIGTERM drains: the running batch is finished and no other is started. A second one stops at once."
    )


def check(parser: Parser) -> None:
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


def adopt(parser: Parser) -> None:
    add_checkpoint(parser)
    parser.add_argument(
        "--name",
        metavar="NAME",
        type=string,
        help="the stream's name (default: the last part of --sink, else of LOCATION); "
        "a run of the program finds it by its checkpoint",
    )
    parser.add_argument(
        "--pipeline",
        metavar="FILE|MODULE",
        type=string,
        help="the program that starts the query, with its arguments ('app.py -- ARGUMENTS'): it is run up to the "
        "start of its queries, none of which is started, to see where the query writes",
    )
    add_spark(parser)
    add_home(parser)
    add_consent(parser)
    add_format(parser)
    parser.epilog = (
        "Nothing in the checkpoint and in the output is changed, and the query may run meanwhile. Repeated, it takes "
        f"in what is new. {mention('release')} forgets the stream."
    )


def release(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_home(parser)
    add_consent(parser)
    add_stopped(parser)
    add_format(parser)
    parser.epilog = (
        "The checkpoint and the rows of the output are not changed: the program continues without Slackwater. Ranges "
        "of batches that the checkpoint no longer has are lost. An interrupted release is finished by the next one."
    )


def stop(parser: Parser) -> None:
    add_stream(parser)
    parser.add_argument("--wait", metavar="60s", default="60s", help="how long to wait for the end (default: 60s)")
    add_home(parser)
    add_format(parser)
    parser.epilog = (
        "Exit code 0: the run has ended. 6: the run had not ended within --wait and will end after its batch, or the "
        "stream was between two starts and was not asked."
    )


def plan(parser: Parser) -> None:
    add_verb = add_verbs(parser)
    for goal in map(goal_named, GOALS):
        of_goal = add_verb(goal.name, goal.summary)
        add_stream(of_goal)
        for flag in goal.flags:
            of_goal.add_argument(
                flag.option,
                dest=flag.field,
                metavar=flag.metavar,
                default=flag.default,
                choices=flag.choices,
                type=string if flag.kind in {"string", "directory"} else str,
                help=flag.help,
            )
        if goal.runs_spark:
            add_spark(of_goal)
        _plan_common(of_goal)
        of_goal.set_defaults(goal=goal.name)


def _plan_common(parser: Parser) -> None:
    parser.add_argument("--out", dest="file", metavar="PLAN", type=path, help="write the plan to this new file")
    add_force(parser)
    parser.add_argument(
        "--pipeline",
        metavar="FILE|MODULE",
        type=string,
        help="the upgraded pipeline, if it moved; of a query that Slackwater only watches, a pipeline with its code",
    )
    parser.add_argument(
        "--downstream",
        action="store_true",
        help="also replay later stages that have read rows to be removed; one apply, one undo",
    )
    add_home(parser)
    add_consent(parser)
    add_debug(parser)
    add_format(parser)
    parser.epilog = f"Nothing is changed. The plan is for {mention('apply')}."


def apply(parser: Parser) -> None:
    parser.add_argument(
        "plan_file", metavar="PLAN", type=path_or_uri, help=f"a file written by {mention('plan')} ... --out"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for the stream's name")
    parser.add_argument(
        "--confirm",
        dest="name",
        metavar="NAME",
        type=string,
        help="the stream's name; needed if the plan clears the output, or keeps rows that its marker does not show",
    )
    parser.add_argument(
        "--discard-others",
        metavar="NAME",
        type=string,
        help="type the stream's name to allow removing rows written by other writers",
    )
    add_stopped(parser)
    add_spark(parser)
    add_home(parser)
    add_consent(parser)
    add_debug(parser)
    add_format(parser)
    parser.epilog = "Each step is journaled: an interrupted apply is continued by running it again."


def undo(parser: Parser) -> None:
    parser.add_argument(
        "operation",
        metavar="OPERATION",
        type=string,
        help=f"the operation's id; {command('ledger', 'STREAM')} lists them",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for the stream's name")
    add_stopped(parser)
    add_home(parser)
    add_consent(parser)
    add_format(parser)
    parser.epilog = "Each step is journaled: an interrupted undo is continued by running it again."
    parser.set_defaults(verb="slackwater.cli.verbs.apply:undo")


def prune(parser: Parser) -> None:
    parser.add_argument("stream", metavar="STREAM", nargs="?", type=string, help="only this one (default: all)")
    parser.add_argument(
        "--keep",
        metavar="N",
        type=natural,
        required=True,
        help="how many generations to keep in addition to the one in use",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_home(parser)
    add_consent(parser)
    add_format(parser)
    parser.epilog = (
        "What was deleted cannot be restored, and an operation whose old generation was deleted cannot be undone. "
        "A running stream is not disturbed. An interrupted prune is finished by the next one."
    )


def audit(parser: Parser) -> None:
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


def connectors(parser: Parser) -> None:
    add_verb = add_verbs(parser)
    listing = add_verb("list", "Show the connectors for the installed Spark.")
    _connectors_common(listing)
    listing.epilog = "Nothing is fetched."
    listing.set_defaults(verb="slackwater.cli.verbs.connectors:list_")

    fetching = add_verb("fetch", "Fetch the jars of connectors ahead of a run.")
    fetching.add_argument("names", metavar="NAME", nargs="+", type=string, help="connectors, such as kafka")
    _connectors_common(fetching)
    fetching.epilog = "Jars that are in the cache are not fetched again. stdout has the paths of the jars."
    fetching.set_defaults(verb="slackwater.cli.verbs.connectors:fetch")


def _connectors_common(parser: Parser) -> None:
    parser.add_argument(
        "--spark", metavar="4.1", type=_spark_version, help="for this Spark instead of the installed one"
    )
    add_home(parser)
    add_format(parser)


def _spark_version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"give a version of Spark such as 4.1 or 4.1.3; found {text!r}")
    return text


def completion(parser: Parser) -> None:
    parser.add_argument("shell", metavar="bash|zsh|fish", type=one_of(Shell), help="the shell")
    parser.epilog = (
        f"bash: source <({command('completion', 'bash')})   "
        f"zsh: source <({command('completion', 'zsh')}), after compinit   "
        f"fish: {command('completion', 'fish')} | source"
    )


def demo(parser: Parser) -> None:
    parser.add_argument(
        "--source",
        type=one_of(Source),
        default=Source.FILES,
        metavar="files|kafka",
        help="what the first stage reads (default: files); kafka starts a broker",
    )
    parser.add_argument(
        "--sink",
        type=one_of(Sink),
        default=Sink.FILES,
        metavar="files|postgres",
        help="what the last stage writes (default: files); postgres starts a server, and the stages before write Delta",
    )
    parser.add_argument(
        "--postgres-url",
        type=string,
        metavar="URL",
        help="a database to use for --sink postgres; a schema is created in it and dropped",
    )
    parser.add_argument("--folder", type=path, help="work in this new or empty folder, and keep it")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder, also if all rows are equal")
    add_format(parser)
    parser.epilog = (
        "With files as sinks a pipeline is killed, upgraded and rebuilt; with --sink postgres each of its stages is "
        "killed after its write, and the last one loses its checkpoint. Exit code 0: the output equals that of an "
        "uninterrupted run. 8: it does not."
    )
