"""``slackwater run``: runs the streams of a pipeline."""

from __future__ import annotations

from argparse import ArgumentTypeError

from slackwater.cli.common.arguments import (
    Parser,
    Verb,
    add_consent,
    add_debug,
    add_home,
    add_program,
    add_spark,
    natural,
    string,
)
from slackwater.core.commands import command as command
from slackwater.core.commands import mention

PORTS = range(65_536)


def _port(text: str) -> int:
    """A port; 0 lets the system choose."""
    port = natural(text)
    if port not in PORTS:
        raise ArgumentTypeError(f"expected a port from 0 to {PORTS[-1]}; found {port}")
    return port


def declare(parser: Parser) -> None:
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
    parser.set_defaults(verb="slackwater.cli.verbs.run.run_streams:run")


VERB = Verb("Run the streams of a pipeline file or module.", declare=declare)
