"""Asks for a name to be typed before something is changed."""

from __future__ import annotations

import sys

from slackwater.cli.common.console import err
from slackwater.core.errors import Refused, UsageError


def confirm(stream: str, what: str, kind: str = "stream", given: str = "--yes") -> None:
    """Have the name of a stream, or of another ``kind``, typed; ``given`` is the option that does without.

    Raises Refused for another name, UsageError if there is no terminal.
    """
    name = stream.rpartition("/")[2]
    if not sys.stdin.isatty():
        raise UsageError("unconfirmed", "There is no terminal to confirm on", hint=f"give {given}")
    try:
        typed = err().input(f"Type the {kind}'s name ({name}) to {what}: ").strip()
    except EOFError:
        typed = ""
    check_name(stream, typed)


def check_name(stream: str, typed: str) -> None:
    """Raises Refused unless the stream's name was typed, alone or with its pipeline's."""
    name = stream.rpartition("/")[2]
    if typed not in (name, stream):
        raise Refused(
            "name-mistyped",
            "Another name was typed; nothing was changed",
            expected=name,
            found=typed or "nothing",
            hint="repeat the command, and type the name that it asks for",
        )
