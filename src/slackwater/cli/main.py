"""The command ``slackwater``, and the only module in which errors become exit codes."""

from __future__ import annotations

import argparse
import errno
import gc
import io
import os
import signal
import sys
import time
from _thread import get_ident, start_new_thread
from collections.abc import Sequence
from contextlib import suppress
from pkgutil import resolve_name
from typing import NoReturn

from slackwater.cli.common.arguments import GROUPS, VERBS, Parser, add_verbs, check_bytes, declare_verb
from slackwater.cli.common.console import report_error, report_interrupt, show_errors_for
from slackwater.core.errors import EnvironmentMissing, SlackwaterError, unreachable
from slackwater.core.reference import reference_of
from slackwater.storage.open import is_uri

INTERRUPTED = 130
SEPARATOR = "--"
INTERRUPT_AGAIN_S = 0.05
"""Delay until a Ctrl-C that Python dropped is raised again: the finalizer is over then."""
GARBAGE_MIN = 100_000
"""New objects before Python looks for cycles."""

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from slackwater import __version__  # noqa: PLC0415 - only this option needs it

        sys.stdout.write(f"slackwater {__version__}\n")
        parser.exit()


def make_parser(arguments: Sequence[str]) -> Parser:
    """The parser. Only the verb in ``arguments`` is imported."""
    parser = Parser(
        "slackwater",
        description="Run Structured Streaming pipelines; stop, upgrade, restart and rebuild them. "
        "No row is lost, none is written twice.",
    )
    parser.add_argument(
        "-V", "--version", action=_Version, nargs=0, default=argparse.SUPPRESS, help="print the version and exit"
    )
    add_verb = add_verbs(parser, GROUPS)
    meant = next((argument for argument in arguments if not argument.startswith("-")), "")
    if meant in VERBS and arguments[0] == meant:
        declare_verb(meant, add_verb(meant, VERBS[meant]))
        return parser
    for name, summary in VERBS.items():
        declared = add_verb(name, summary)
        if name == meant:
            declare_verb(name, declared)
    return parser


def entry() -> NoReturn:
    """The console script: ``main``, and the end of the process. Without Spark nothing needs an orderly shutdown, which
    would take an eighth of a short command's time.
    """
    # With a closed stream (``<&-``, ``>&-``), the next opened file would get its number.
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Characters outside the terminal's encoding are escaped: a path can hold any byte.
        sys.stdout.reconfigure(errors="backslashreplace")
    # What is imported stays: looking through it for garbage, again and again, would be a tenth of a short command.
    gc.set_threshold(GARBAGE_MIN)
    sys.unraisablehook = _repeat_lost_interrupt
    code = main()
    if "pyspark" in sys.modules:
        sys.exit(code)
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def _repeat_lost_interrupt(unraisable: sys.UnraisableHookArgs) -> None:
    """Raises a Ctrl-C again that Python dropped in a finalizer or a weak reference's callback."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return

    # Python raises it in the main thread only.
    main_thread = get_ident()

    def repeat() -> None:
        time.sleep(INTERRUPT_AGAIN_S)
        signal.pthread_kill(main_thread, signal.SIGINT)

    start_new_thread(repeat, ())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code (docs/exit-codes.md)."""
    try:
        code = _reported(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe; Python must not complain about it at exit.
        sys.stdout = None  # the interpreter's own advice for closed pipes
        return 0
    except OSError as error:
        place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
        if error.errno in _NO_SPACE:
            sys.stdout = None  # what could not be written is not tried again at exit
            return _shown(
                EnvironmentMissing(
                    "disk-full", "There is no space left to write to", where=place, hint="free some space and try again"
                )
            )
        if place is not None and is_uri(place):
            return _shown(unreachable("The store", error, place))
        # An error of the operating system is the machine's, wherever it was raised.
        return _shown(
            EnvironmentMissing(
                "file-inaccessible",
                "The operating system refuses access to a file or folder",
                where=place,
                found=error.strerror or str(error),
                hint="check that it is a regular file or a folder, and that this user may read and write it",
            )
        )
    else:
        return code


def _reported(arguments: list[str]) -> int:
    show_errors_for(arguments)
    try:
        return _run(arguments)
    except KeyboardInterrupt as interrupt:
        report_interrupt(interrupt)
        return INTERRUPTED
    except SlackwaterError as error:
        return _shown(error)


def _shown(error: SlackwaterError) -> int:
    """The exit code, which reports the error if stderr is closed."""
    with suppress(OSError):
        report_error(error)
    return error.exit_code


def _run(arguments: list[str]) -> int:
    check_bytes(arguments)
    parser = make_parser(arguments)
    if not arguments:
        parser.print_help()
        return 0
    # If a verb takes a pipeline, arguments after ``--`` are the application's.
    place = arguments.index(SEPARATOR) if SEPARATOR in arguments else len(arguments)
    try:
        options = vars(parser.parse_args(arguments[:place]))
        if options.get("pipeline") and place < len(arguments):
            options["pipeline"] = reference_of(options["pipeline"], arguments[place + 1 :])
        elif place < len(arguments):
            options = vars(parser.parse_args(arguments))
    except SystemExit:
        # Only --help and --version end this way; mistakes are UsageErrors.
        return 0
    code: int = resolve_name(options.pop("verb"))(**options)
    return code
