"""The arguments of the verbs that start, change or make something: light to import, for ``--help`` and completion."""

import argparse
import re
from argparse import ArgumentTypeError
from enum import StrEnum

from slackwater.cli.common.arguments import (
    Parser,
    add_checkpoint,
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
    parser.takes("folder", "DIR", "a new or empty folder", path)
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
    parser.flag("--until-caught-up", "process all available input, stage after stage, then end")
    parser.takes("--for", "60s", "drain and end after this time", str, dest="duration")
    parser.takes(
        "--accept",
        "CODE",
        f"start although the code was changed in this way (see {mention('check')}); may be repeated",
        dest="accepted",
        action="append",
    )
    parser.takes(
        "--metrics-port",
        "PORT",
        "serve Prometheus metrics of the streams at this port while they run; 0: a free port",
        _port,
    )
    parser.takes(
        "--metrics-host",
        "ADDRESS",
        "the address for the metrics (default: %(default)s, this machine only)",
        default="127.0.0.1",
    )
    parser.takes(
        "--hold",
        "FILE",
        "if the start is refused, write the reason to this file and wait for SIGTERM: a restart would be refused again",
        path,
    )
    add_spark(parser)
    add_home(parser)
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
        "The DataFrames are built, and no query is started; nothing is written. Exit code 0: all streams may start. "
        "1: a run would refuse a stream because of its changes. 5: all may start, but a plan or code cannot be read, "
        "or no program is recorded for the state."
    )


def adopt(parser: Parser) -> None:
    add_checkpoint(parser)
    parser.takes(
        "--name",
        "NAME",
        "the stream's name (default: the last part of --sink, else of LOCATION); "
        "a run of the program finds it by its checkpoint",
    )
    parser.takes(
        "--pipeline",
        "FILE|MODULE",
        "the program that starts the query, with its arguments ('app.py -- ARGUMENTS'): it is run up to the "
        "start of its queries, none of which is started, to see where the query writes",
    )
    add_spark(parser)
    add_home(parser)
    add_format(parser)
    parser.epilog = (
        "Nothing in the checkpoint and in the output is changed, and the query may run meanwhile. Repeated, it takes "
        f"in what is new. {mention('release')} forgets the stream."
    )


def release(parser: Parser) -> None:
    add_stream(parser)
    parser.flag("--yes", "do not ask")
    add_home(parser)
    add_stopped(parser)
    add_format(parser)
    parser.epilog = (
        "The checkpoint and the rows of the output are not changed: the program continues without Slackwater. Ranges "
        "of batches that the checkpoint no longer has are lost. An interrupted release is finished by the next one."
    )


def home(parser: Parser) -> None:
    accepting = add_verbs(parser)("accept", "Use a home that was moved or copied.")
    choice = accepting.add_mutually_exclusive_group(required=True)
    texts = {
        "moved": "use the moved home: rewrite its recorded paths",
        "copied": "treat the copied home as independent (new ids)",
    }
    for consent, text in texts.items():
        choice.add_argument(f"--{consent}", dest="consent", action="store_const", const=consent, help=text)
    add_home(accepting)
    add_format(accepting)
    accepting.epilog = (
        "The streams of a copied home need outputs of their own. Exit code 5: it was not moved or copied so."
    )
    accepting.set_defaults(verb="slackwater.cli.verbs.release:accept")


def stop(parser: Parser) -> None:
    add_stream(parser)
    parser.takes("--wait", "60s", "how long to wait for the end (default: 60s)", str, default="60s")
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
            of_goal.takes(
                flag.option,
                flag.metavar,
                flag.help,
                string if flag.kind in {"string", "directory"} else str,
                dest=flag.field,
                default=flag.default,
                choices=flag.choices,
            )
        if goal.runs_spark:
            add_spark(of_goal)
        of_goal.takes("--out", "PLAN", "write the plan to this new file", path, dest="file")
        add_force(of_goal)
        of_goal.takes(
            "--pipeline",
            "FILE|MODULE",
            "the upgraded pipeline, if it moved; for a watched query, a pipeline with its code",
        )
        of_goal.flag("--downstream", "also replay later stages that have read rows to be removed; one apply, one undo")
        add_home(of_goal)
        add_debug(of_goal)
        add_format(of_goal)
        of_goal.epilog = f"Nothing is changed. The plan is for {mention('apply')}."
        of_goal.set_defaults(goal=goal.name)


def apply(parser: Parser) -> None:
    parser.takes("plan_file", "PLAN", f"a file written by {mention('plan')} ... --out", path_or_uri)
    parser.flag("--yes", "do not ask for the stream's name")
    parser.takes(
        "--confirm",
        "NAME",
        "the stream's name; needed if the plan clears the output, or keeps rows that its marker does not show",
        dest="name",
    )
    parser.takes("--discard-others", "NAME", "type the stream's name to allow removing rows written by other writers")
    add_stopped(parser)
    add_spark(parser)
    add_home(parser)
    add_debug(parser)
    add_format(parser)
    parser.epilog = "Each step is journaled: an interrupted apply is continued by running it again."


def undo(parser: Parser) -> None:
    parser.takes("operation", "OPERATION", f"the operation's id; {command('ledger', 'STREAM')} lists them")
    parser.flag("--yes", "do not ask for the stream's name")
    add_stopped(parser)
    add_home(parser)
    add_format(parser)
    parser.epilog = "Each step is journaled: an interrupted undo is continued by running it again."
    parser.set_defaults(verb="slackwater.cli.verbs.apply:undo")


def prune(parser: Parser) -> None:
    parser.takes("stream", "STREAM", "only this one (default: all)", nargs="?")
    parser.takes("--keep", "N", "how many generations to keep besides the generation in use", natural, required=True)
    parser.flag("--yes", "do not ask")
    add_home(parser)
    add_format(parser)
    parser.epilog = (
        "A deleted generation cannot be restored, and its operation cannot be undone. "
        "A running stream is not disturbed. An interrupted prune is finished by the next one."
    )


def audit(parser: Parser) -> None:
    add_pipeline(parser)
    parser.takes(
        "--drill",
        "before|line|job|task|twice|after",
        "only this drill; may be repeated",
        dest="drills",
        action="append",
    )
    parser.takes(
        "--set",
        "NAME=VALUE",
        "an environment variable for the pipeline file; {run} becomes reference or drill, {folder} its folder",
        str,
        dest="variables",
        action="append",
    )
    parser.add_argument("--folder", type=path, help="work in this new or empty folder, and keep it")
    parser.takes("--conf", "KEY=VALUE", "a Spark setting; may be repeated", str, action="append")
    parser.flag("--yes", "do not ask for the pipeline's name")
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
    fetching.takes("names", "NAME", "connectors, such as kafka", nargs="+")
    _connectors_common(fetching)
    fetching.epilog = "Jars that are in the cache are not fetched again. stdout has the paths of the jars."
    fetching.set_defaults(verb="slackwater.cli.verbs.connectors:fetch")


def _connectors_common(parser: Parser) -> None:
    parser.takes("--spark", "4.1", "for this Spark instead of the installed one", _spark_version)
    add_home(parser)
    add_format(parser)


def _spark_version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"give a version of Spark such as 4.1 or 4.1.3; found {text!r}")
    return text


def completion(parser: Parser) -> None:
    parser.takes("shell", "bash|zsh|fish", "the shell", one_of(Shell))
    parser.epilog = (
        f"bash: source <({command('completion', 'bash')})   "
        f"zsh: source <({command('completion', 'zsh')}), after compinit   "
        f"fish: {command('completion', 'fish')} | source"
    )


def demo(parser: Parser) -> None:
    parser.takes(
        "--source",
        "files|kafka",
        "what the first stage reads (default: files); kafka starts a broker",
        one_of(Source),
        default=Source.FILES,
    )
    parser.takes(
        "--sink",
        "files|postgres",
        "what the last stage writes (default: files); postgres starts a server, and the stages before write Delta",
        one_of(Sink),
        default=Sink.FILES,
    )
    parser.takes(
        "--postgres-url", "URL", "a database to use for --sink postgres; a schema is created in it and dropped"
    )
    parser.add_argument("--folder", type=path, help="work in this new or empty folder, and keep it")
    parser.flag("--keep", "keep the temporary folder, also if all rows are equal")
    add_format(parser)
    parser.epilog = (
        "With files as sinks a pipeline is killed, upgraded and rebuilt; with --sink postgres each of its stages is "
        "killed after its write, and the last one loses its checkpoint. Exit code 0: the output equals that of an "
        "uninterrupted run. 8: it does not."
    )
