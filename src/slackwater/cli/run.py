"""``slackwater run``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from slackwater.cli.console import ConfOption, HomeOption, MasterOption, err, parse_conf, parse_seconds, prepare

FAILED = 7
INTERRUPTED = 130


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run", help="Run the streams of a pipeline file or module.")(run)


def run(
    pipeline: Annotated[str, typer.Argument(metavar="FILE|MODULE", help="The pipeline.")],
    stream: Annotated[list[str] | None, typer.Option("--stream", help="Only this stream; may be given again.")] = None,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="Process all that is there, stage after stage, then end.")
    ] = False,
    duration: Annotated[str | None, typer.Option("--for", metavar="60s", help="Drain and end after this time.")] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    home: HomeOption = None,
) -> int:
    """Ctrl-C or SIGTERM drains: the running batch is finished, none is begun after it. A second one stops at once."""
    from slackwater.app.run_pipeline import RunOptions, run_pipeline  # noqa: PLC0415 - light start
    from slackwater.cli.run_display import make_display  # noqa: PLC0415

    settings = prepare(home, logging=True)
    options = RunOptions(
        streams=tuple(stream or ()),
        until_caught_up=until_caught_up,
        seconds=parse_seconds(duration) if duration is not None else None,
        master=master,
        spark=parse_conf(conf),
    )
    with make_display(live=sys.stderr.isatty()) as display:
        outcomes = run_pipeline(pipeline, options, settings, display)
    console = err()
    for outcome in outcomes:
        console.print(
            f"{outcome.stream}: {outcome.end}" + (f": {outcome.reason}" if outcome.reason else ""), markup=False
        )
    ends = {outcome.end for outcome in outcomes}
    if "failed" in ends:
        return FAILED
    return INTERRUPTED if "interrupted" in ends else 0
