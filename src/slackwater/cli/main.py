"""The command ``slackwater``: its verbs, and the one place where errors become exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from slackwater.cli.console import report_error, report_interrupt
from slackwater.errors import SlackwaterError, UsageError

INTERRUPTED = 130

# Newer versions of Typer carry a click of their own, whose base of all errors has no public name.
_ClickError: type[Exception] = typer.BadParameter.__mro__[2]

VERBS = {
    "demo": "Kill, upgrade and restart a pipeline over a real year of weather, and compare every row. "
    "About two minutes.",
    "run": "Run the streams of a pipeline file or module.",
    "stop": "Let a running stream finish its batch and end.",
    "status": "Show where the streams stand, who runs them, and what comes next.",
    "inspect": "Show what is in a checkpoint, without a JVM and without writing anything.",
    "offsets": "Print where a new query would begin reading, as Kafka's startingOffsets.",
    "apply": "Carry out a plan; refuses if anything moved since it was made.",
    "ledger": "Show what the ledger remembers of streams, runs, operations and batches.",
    "plan": "Show what a remedy would do and cost; write it down as a plan.",
    "connectors": "Show and fetch connector jars, by a locked list.",
}
"""Each is the module of its name; groups of verbs come last, as in Typer's own order.

What a verb says of itself stands here too, so that --help need not import them all.
"""


def make_app(arguments: Sequence[str]) -> typer.Typer:
    """The verbs these arguments can reach: the one they begin with, by name only where they name none, or all."""
    app = typer.Typer(
        name="slackwater",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Run Structured Streaming pipelines; stop, upgrade, restart and rebuild them; lose or double no row.",
    )
    app.callback(invoke_without_command=True)(_options)
    if not VERBS.keys() & set(arguments):
        for name, summary in VERBS.items():
            app.command(name, help=summary)(_listed_only)
        return app
    for name in arguments[:1] if arguments[0] in VERBS else VERBS:
        import_module(f"slackwater.cli.{name}").register(app)
    return app


def _listed_only() -> None:
    """Stands for a verb in the list of them; never called."""


def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and end."),
) -> None:
    if version:
        from slackwater import __version__  # noqa: PLC0415 - only this option needs it

        typer.echo(f"slackwater {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; the table is in docs/exit-codes.md."""
    try:
        return _run(arguments)
    except (typer.Abort, KeyboardInterrupt):
        report_interrupt()
        return INTERRUPTED
    except SlackwaterError as error:
        report_error(error)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has enough; Python must not complain about it at exit.
        sys.stdout = None  # the interpreter's own advice for closed pipes
        return 0


def _run(arguments: Sequence[str] | None) -> int:
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        code: int | None = make_app(given)(args=given, prog_name="slackwater", standalone_mode=False)
    except _ClickError as error:
        raise _usage(error) from error
    return code or 0


def _usage(error: BaseException) -> UsageError:
    """What Typer found wrong with the command line, as one of our errors."""
    # A group of verbs without a verb has printed its help, and says nothing more.
    told = getattr(error, "format_message", error.__str__)() or "Something is missing in this command"
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "slackwater"
    return UsageError("usage", " ".join(told.split()), hint=f"{command} --help")
