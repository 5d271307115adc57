from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn, TypeVar

from slackwater.core.errors import UsageError
from slackwater.core.escaping import is_unicode
from slackwater.core.masking import brief
from slackwater.core.units import parse_size

Choice = TypeVar("Choice", bound=StrEnum)

LARGEST_ID = 2**63 - 1
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")
_NATURAL = re.compile(r"[0-9]{1,19}")


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Option:
    names: tuple[str, ...]
    summary: str
    takes_value: bool
    values: tuple[str, ...] = ()


class Parser(argparse.ArgumentParser):
    """Raises UsageError, and accepts no shortened options: a new option would break them."""

    def __init__(self, prog: str, *, description: str | None = None) -> None:
        super().__init__(
            prog,
            description=description,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=32),
        )
        self.after_unknown = ""

    def takes(
        self, name: str, metavar: str | None, text: str, kind: Callable[[str], object] | None = None, **more: Any
    ) -> None:
        """An argument with a value: a string that is not blank, or of another ``kind``."""
        self.add_argument(name, metavar=metavar, help=text, type=kind or string, **more)

    def flag(self, name: str, text: str, **more: Any) -> None:
        self.add_argument(name, help=text, action="store_true", **more)

    def parse_known_args(  # type: ignore[override] # typeshed has overloads for namespaces that are not used here
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Called by argparse for each verb, so that a verb reports its own unknown arguments."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            option = unknown[0].partition("=")[0]
            meant = did_you_mean(option, self._option_string_actions)
            self.error(f"unrecognized: {' '.join(unknown)}{meant}{self.after_unknown}")
        return known, unknown

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(name) for name in action.choices]
            if action.option_strings:
                raise argparse.ArgumentError(action, f"choose from {', '.join(names)}; found {value!r}")
            self.error(f"unknown verb {str(value)!r}{did_you_mean(str(value), names)} (choose from {', '.join(names)})")

    def options(self) -> list[Option]:
        return [
            Option(
                tuple(action.option_strings),
                (action.help or "") % {**vars(action), "prog": self.prog},
                action.nargs != 0,
                _values(action),
            )
            for action in self._actions
            if action.option_strings
        ]

    def values(self) -> tuple[str, ...]:
        return tuple(value for action in self._actions if not action.option_strings for value in _values(action))

    def verbs(self) -> dict[str, Parser]:
        groups = (action.choices for action in self._actions if isinstance(action.choices, Mapping))
        return {str(name): parser for group in groups for name, parser in group.items() if isinstance(parser, Parser)}

    def error(self, message: str) -> NoReturn:
        raise UsageError("usage", message[:1].upper() + message[1:], hint=f"{self.prog} --help")


def _values(action: argparse.Action) -> tuple[str, ...]:
    shown = action.metavar if isinstance(action.metavar, str) else ""
    return tuple(shown.split("|")) if "|" in shown and shown.islower() else ()


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean ...?`` with the most similar word, if any."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def check_bytes(arguments: Sequence[str]) -> None:
    for argument in arguments:
        if not is_unicode(argument):
            raise UsageError(
                "argument-bytes",
                "An argument is not valid UTF-8, or contains a NUL character",
                expected="UTF-8 without NUL",
                found=ascii(argument),
                hint="rename the file or folder, or type the argument again in a UTF-8 terminal",
            )


def add_verbs(parser: Parser, groups: Mapping[str, Mapping[str, str]] = {}) -> Callable[[str, str], Parser]:
    """The returned function adds a verb by name and summary. ``groups`` are listed in their place."""
    hidden = {"help": argparse.SUPPRESS} if groups else {}
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, prog=parser.prog, **hidden)
    for title, listed in groups.items():
        parser.usage = "%(prog)s [-h] [-V] VERB ..."
        group = parser.add_argument_group(title)
        shown = (argparse.Action([], name, metavar=name, help=text) for name, text in listed.items())
        vars(group)["_group_actions"] += shown

    def add(name: str, summary: str) -> Parser:
        return verbs.add_parser(name, help=summary, description=summary)

    return add


def one_of(choices: type[Choice]) -> Callable[[str], Choice]:
    def parse(text: str) -> Choice:
        try:
            return choices(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"choose from {', '.join(choices)}; found {text!r}") from None

    return parse


def string(text: str) -> str:
    """A string that is not blank: an empty string is an unset shell variable, and no default may replace it."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"the value is empty; found {text!r}")
    return text


def path(text: str) -> Path:
    """A path of this machine. A store's address would become a folder named ``hdfs:``."""
    if _URI.match(string(text)):
        raise argparse.ArgumentTypeError(f"give a path on this machine; found the address {shortened(text)}")
    return Path(text)


def path_or_uri(text: str) -> Path | str:
    return text if _URI.match(string(text)) else Path(text)


def natural(text: str) -> int:
    """An integer from 0 to ``LARGEST_ID``."""
    number = natural_or_none(text)
    if number is None:
        raise argparse.ArgumentTypeError(f"give an integer from 0 to {LARGEST_ID}; found {shortened(text)}")
    return number


def natural_or_none(text: str) -> int | None:
    number = int(text) if _NATURAL.fullmatch(text) else -1
    return number if 0 <= number <= LARGEST_ID else None


def shortened(text: str) -> str:
    return brief(repr(text))


def byte_size(text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError:
        size = 0
    if size <= 0:
        raise argparse.ArgumentTypeError(f"give a number of bytes, for example 512MiB or 8GiB; found {text!r}")
    return size


def add_stream(parser: Parser) -> None:
    parser.takes("stream", "STREAM", "stream, or pipeline/stream")


def add_checkpoint(parser: Parser) -> None:
    parser.takes("location", "LOCATION", "the checkpoint's path or URI")
    parser.takes("--sink", "URI", "where its query writes: a path or URI")


def add_pipeline(parser: Parser, text: str = "the pipeline") -> None:
    parser.takes("pipeline", "FILE|MODULE", text)
    parser.takes("--stream", "NAME", "only this stream; may be repeated", dest="streams", action="append")


def add_program(parser: Parser) -> None:
    add_pipeline(parser, "the pipeline, or an application that starts its own queries; its arguments follow --")
    parser.after_unknown = "; the arguments of an application follow --"


def add_home(parser: Parser) -> None:
    parser.takes("--home", "LOCATION", "folder or URI of ledger and checkpoints (default: .slackwater)")


def add_stopped(parser: Parser) -> None:
    parser.flag(
        "--i-stopped-it",
        "confirm that the query has been stopped even though its checkpoint was written recently",
        dest="stopped",
    )


def add_format(parser: Parser) -> None:
    parser.takes(
        "--format",
        "text|json",
        "text for people (default), JSON for programs",
        one_of(Format),
        dest="shown_as",
        default=Format.TEXT,
    )


def add_force(parser: Parser) -> None:
    parser.flag("--force", "replace the file if it exists")


def add_spark(parser: Parser) -> None:
    parser.takes("--master", "URL", "Spark's master (default: local[*])")
    parser.takes("--conf", "KEY=VALUE", "a Spark setting; may be repeated", str, action="append")


def add_debug(parser: Parser) -> None:
    parser.flag("--debug", "show the traceback of your own code where it raises an error")


GROUPS: Mapping[str, Mapping[str, str]] = {
    "run and adopt queries": {
        "run": "Run the streams of a pipeline file or module.",
        "check": "Compare changed code with the streams' state; nothing is started or written.",
        "stop": "Let a running stream finish its batch and end.",
        "adopt": "Record a checkpoint of a program that starts its own queries.",
        "release": "Forget a stream of a program that starts its own queries.",
    },
    "inspect and diagnose": {
        "status": "Show the state of the streams, who runs them, and the next command.",
        "doctor": "Diagnose streams and checkpoints: what is wrong, what is at stake, and which remedy is safe.",
        "watch": "Show the marks and the lag of any checkpoint while its query runs.",
        "inspect": "Show what is in a checkpoint, without a JVM and without writing anything.",
        "ledger": "Show the ledger's records of streams, runs, operations and batches.",
        "evidence": "Pack all facts about a stream into one file for a colleague: "
        "a page and JSON, no rows, no secrets.",
        "explain": "Explain a code of a finding or an error: what it means, how it is recognised, and what to do.",
        "offsets": "Print where a new query would start reading, as Kafka's startingOffsets.",
    },
    "plan and apply remedies": {
        "plan": "Show what a remedy would do and cost, and write it to a plan file.",
        "apply": "Apply a plan; refuses if anything changed since it was made.",
        "undo": "Undo an operation, also a partially applied one.",
        "prune": "Delete old generations of checkpoints, and the backups of operations that then cannot be undone.",
        "home": "Use a home that was moved or copied.",
    },
    "learn and set up": {
        "init": "Lay out an example project with input data in a new folder.",
        "demo": "Kill, upgrade and restart a pipeline over a real year of weather, and compare "
        "every row. About 3 minutes; 5 with tables.",
        "sinks": "List the sinks: guarantee and reason, output modes, and what a rebuild can do.",
        "audit": "Run crash drills on the sinks of a pipeline file, and show which rows doubled or vanished.",
        "connectors": "Show and fetch connector jars, from a locked list.",
        "completion": "Print a script that completes verbs and options in a shell.",
    },
}
"""Verbs by what they are for, with summaries, in the order of ``--help``."""
VERBS = {name: summary for verbs in GROUPS.values() for name, summary in verbs.items()}
READING = frozenset({"status", "doctor", "watch", "evidence", "inspect", "offsets", "ledger", "explain", "sinks"})


def declare_verb(name: str, parser: Parser) -> None:
    """Adds the arguments and, as the default of ``verb``, ``module:function``: the function returns the exit code."""
    parser.set_defaults(verb=f"slackwater.cli.verbs.{name}:{name}")
    kind = "reading" if name in READING else "changing"
    resolve_name(f"slackwater.cli.common.declare_{kind}:{name}")(parser)
