"""The command ``slackwater``: its verbs, and the one place where errors become exit codes."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from slackwater.cli.arguments import Parser, add_verbs
from slackwater.cli.console import report_error, report_interrupt
from slackwater.errors import EnvironmentMissing, SlackwaterError

INTERRUPTED = 130
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

VERBS = {
    "init": "Lay out an example project with input data in a new folder.",
    "run": "Run the streams of a pipeline file or module.",
    "stop": "Let a running stream finish its batch and end.",
    "status": "Show where the streams stand, who runs them, and what comes next.",
    "inspect": "Show what is in a checkpoint, without a JVM and without writing anything.",
    "plan": "Show what a remedy would do and cost; write it down as a plan.",
    "apply": "Apply a plan; refuses if anything has changed since it was made.",
    "undo": "Take an operation back, as far as it came.",
    "offsets": "Print where a new query would begin reading, as Kafka's startingOffsets.",
    "ledger": "Show what the ledger remembers of streams, runs, operations and batches.",
    "connectors": "Show and fetch connector jars, by a locked list.",
    "completion": "Print a script that completes verbs and options in a shell.",
    "demo": "Kill, upgrade and restart a pipeline over a real year of weather, and compare every row. "
    "About two minutes.",
}
"""Each is the module of its name: ``declare`` says what arguments it takes, and which function gets them."""


class _Version(argparse.Action):
    """Looks for the version only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from slackwater import __version__  # noqa: PLC0415 - only this option needs it

        sys.stdout.write(f"slackwater {__version__}\n")
        parser.exit()


def make_parser(arguments: Sequence[str]) -> Parser:
    """The parser for these arguments: all verbs are listed, and the one that is meant is imported."""
    parser = Parser(
        "slackwater",
        description="Run Structured Streaming pipelines; stop, upgrade, restart and rebuild them. "
        "No row is lost, none is written twice.",
    )
    parser.add_argument(
        "-V", "--version", action=_Version, nargs=0, default=argparse.SUPPRESS, help="print the version and end"
    )
    add_verb = add_verbs(parser)
    meant = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, summary in VERBS.items():
        verb = add_verb(name, summary)
        if name == meant:
            import_module(f"slackwater.cli.{name}").declare(verb)
    return parser


def entry() -> NoReturn:
    """The console script: ``main``, and the end of the process.

    Where no Spark was loaded nothing is left to be ended in order, and Python need not take all its modules apart: that
    would be an eighth of the time of a short command.
    """
    _open_what_is_closed()
    code = main()
    if "pyspark" in sys.modules:
        sys.exit(code)
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def _open_what_is_closed() -> None:
    """Started without stdout or stderr (``>&-``), the next file that we or our JVM open would take its number."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; the table is in docs/exit-codes.md."""
    try:
        code = _reported(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has enough; Python must not complain about it at exit.
        sys.stdout = None  # the interpreter's own advice for closed pipes
        return 0
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        sys.stdout = None  # what could not be written is not tried again at exit
        return _told(EnvironmentMissing("disk-full", "There is no space left to write to", where=error.filename))
    else:
        return code


def _reported(arguments: list[str]) -> int:
    """The command's exit code, or that of the error that was shown."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        report_interrupt()
        return INTERRUPTED
    except SlackwaterError as error:
        return _told(error)


def _told(error: SlackwaterError) -> int:
    """Show the error; its exit code says it, too, where nobody can be shown it."""
    with suppress(OSError):
        report_error(error)
    return error.exit_code


def _run(arguments: list[str]) -> int:
    parser = make_parser(arguments)
    if not arguments:
        parser.print_help()
        return 0
    try:
        options: dict[str, Any] = vars(parser.parse_args(arguments))
    except SystemExit:
        # Help or the version was asked for, and is shown; mistakes are UsageErrors.
        return 0
    verb = options.pop("verb")
    code: int = verb(**options)
    return code
