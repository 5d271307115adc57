"""``slackwater run``."""

from __future__ import annotations

import sys

from slackwater.cli.arguments import Parser, add_consent, add_debug, add_home, add_pipeline, add_spark, consent_of
from slackwater.cli.console import err, parse_conf, parse_seconds, prepare

FAILED = 7
INTERRUPTED = 130


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    add_pipeline(parser)
    parser.add_argument(
        "--until-caught-up", action="store_true", help="process all available input, stage after stage, then end"
    )
    parser.add_argument("--for", dest="duration", metavar="60s", help="drain and end after this time")
    add_spark(parser)
    add_home(parser)
    add_consent(parser)
    add_debug(parser)
    parser.epilog = (
        "Ctrl-C or SIGTERM drains: the running batch is finished and no other is started. A second one stops at once."
    )
    parser.set_defaults(verb=run)


def run(
    *,
    pipeline: str,
    streams: list[str] | None,
    until_caught_up: bool,
    duration: str | None,
    master: str | None,
    conf: list[str] | None,
    home: str | None,
    moved: bool,
    copied: bool,
    debug: bool,
) -> int:
    """Run, and report on stderr how each stream ended."""
    from slackwater.app.run_pipeline import RunOptions, run_pipeline  # noqa: PLC0415 - light start
    from slackwater.cli.run_display import make_display  # noqa: PLC0415

    settings = prepare(home, logging=True, debug=debug)
    options = RunOptions(
        streams=tuple(streams or ()),
        until_caught_up=until_caught_up,
        seconds=parse_seconds(duration) if duration is not None else None,
        master=master,
        spark=parse_conf(conf),
        consent=consent_of(moved=moved, copied=copied),
    )
    with make_display(live=sys.stderr.isatty()) as display:
        outcomes = run_pipeline(pipeline, options, settings, display)
    console = err()
    for outcome in outcomes:
        if debug and outcome.failure is not None and outcome.failure.traceback:
            console.print(outcome.failure.traceback, markup=False, soft_wrap=True)
        place = f" at {outcome.failure.place}" if outcome.failure is not None and outcome.failure.place else ""
        reason = f": {outcome.reason}" if outcome.reason else ""
        console.print(f"{outcome.stream}: {outcome.end}{reason}{place}", markup=False, soft_wrap=True)
    ends = {outcome.end for outcome in outcomes}
    if "failed" in ends:
        return FAILED
    return INTERRUPTED if "interrupted" in ends else 0
