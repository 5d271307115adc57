"""How every verb declares its arguments: argparse, with mistakes as our errors and the options that verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Literal, NoReturn, TypeVar

from slackwater.errors import UsageError
from slackwater.model.units import parse_size

Choice = TypeVar("Choice", bound=StrEnum)


class Format(StrEnum):
    """How a result is shown on stdout."""

    TEXT = "text"
    JSON = "json"


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, and takes no shortened options: they would break when another one is added."""

    def __init__(self, prog: str, *, description: str | None = None, epilog: str | None = None) -> None:
        super().__init__(prog, description=description, epilog=epilog, allow_abbrev=False, formatter_class=_formatter)

    def parse_known_args(  # type: ignore[override] # typeshed has overloads for namespaces that nobody here gives
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Called by argparse for each verb: what it does not know is told by the verb that it was given to."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """Called by argparse for what does not parse."""
        raise UsageError("usage", message[:1].upper() + message[1:], hint=f"{self.prog} --help")


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.HelpFormatter(prog, max_help_position=32)


def add_verbs(parser: Parser) -> Callable[[str, str], Parser]:
    """Give a parser verbs of its own; the function returned adds one by its name and its line in the list."""
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, prog=parser.prog)

    def add(name: str, summary: str) -> Parser:
        return verbs.add_parser(name, help=summary, description=summary)

    return add


def one_of(choices: type[Choice]) -> Callable[[str], Choice]:
    """A parser of an enumeration's values."""

    def parse(text: str) -> Choice:
        try:
            return choices(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"choose from {', '.join(choices)}; found {text!r}") from None

    return parse


def natural(text: str) -> int:
    """A whole number, 0 or more."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"give a whole number, 0 or more; found {text!r}")
    return int(text)


def byte_size(text: str) -> int:
    """A number of bytes above 0, with or without a unit."""
    try:
        size = parse_size(text)
    except ValueError:
        size = 0
    if size <= 0:
        raise argparse.ArgumentTypeError(f"give a number of bytes, for example 512MiB or 8GiB; found {text!r}")
    return size


def add_stream(parser: Parser) -> None:
    """The stream that a verb is about."""
    parser.add_argument("stream", metavar="STREAM", help="stream, or pipeline/stream")


def add_home(parser: Parser) -> None:
    """Where ledger and checkpoints lie."""
    parser.add_argument("--home", metavar="FOLDER", help="where ledger and checkpoints lie (default: .slackwater)")


def add_consent(parser: Parser) -> None:
    """What the user says of a home that is not where it was made."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--moved", action="store_true", help="the home was moved here, and is used from here on")
    choice.add_argument("--copied", action="store_true", help="the home is a copy, and becomes one of its own")


def consent_of(*, moved: bool, copied: bool) -> Literal["moved", "copied"] | None:
    """The two flags as one value."""
    return "moved" if moved else "copied" if copied else None


def add_format(parser: Parser) -> None:
    """How the result is shown."""
    parser.add_argument(
        "--format",
        dest="shown_as",
        type=one_of(Format),
        default=Format.TEXT,
        metavar="text|json",
        help="text for people (default), JSON for programs",
    )


def add_spark(parser: Parser) -> None:
    """What a verb that starts Spark passes on to it."""
    parser.add_argument("--master", metavar="URL", help="Spark's master (default: local[*])")
    parser.add_argument("--conf", metavar="KEY=VALUE", action="append", help="a setting of Spark; may be given again")
