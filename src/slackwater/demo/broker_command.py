"""``python -m slackwater.demo.broker_command up|down|status``: what ``scripts/kafka`` runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from slackwater.demo.broker import Broker
from slackwater.errors import NotFound, SlackwaterError


def main(arguments: Sequence[str]) -> int:
    """Prints the bootstrap servers on stdout for ``up`` and ``status``; exit codes are those of the errors."""
    parser = argparse.ArgumentParser(prog="scripts/kafka", description="A Kafka broker of one's own on 127.0.0.1.")
    parser.add_argument("verb", choices=("up", "down", "status"))
    parser.add_argument("--folder", type=Path, default=Path(".slackwater", "kafka"), help="default: %(default)s")
    parser.add_argument("--port", type=int, help="default: a free one")
    options = parser.parse_args(arguments)
    try:
        if options.verb == "down":
            _stop(options.folder)
        else:
            broker = Broker.start(options.folder, options.port) if options.verb == "up" else _running(options.folder)
            print(broker.bootstrap_servers)  # noqa: T201 # the answer of this command
    except SlackwaterError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        print(f"error: {error}{hint}", file=sys.stderr)  # noqa: T201 # a command of its own
        return error.exit_code
    return 0


def _stop(folder: Path) -> None:
    broker = Broker.find(folder)
    if broker:
        broker.stop()


def _running(folder: Path) -> Broker:
    broker = Broker.find(folder)
    if broker is None:
        raise NotFound("broker-not-running", "No broker runs in this folder", where=str(folder.absolute()))
    return broker


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
