"""Reads a failure's text, or the last run's reason, and joins it with the diagnosis."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import TextIOWrapper
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TextIO

from slackwater.cli.common.arguments import shortened
from slackwater.cli.common.examine import Examined
from slackwater.core.errors import NotFound
from slackwater.core.escaping import one_line
from slackwater.core.facts import Facts
from slackwater.core.masking import mask
from slackwater.diagnose.causes import explained
from slackwater.diagnose.error_codes import error_codes
from slackwater.diagnose.error_texts import Symptom, recognise

PIECE = 1 << 16
_OWN = re.compile(r"(?:error |\S+: failed: )?(?P<code>[a-z][a-z0-9]*(?:-[a-z0-9]+)+): ")
"""A line that prints or records an error of Slackwater's own starts with its code."""
_READ = {
    "spark": re.compile(
        r"(?:\b[Ss]park(?: version)? |\bspark-(?:core|sql)_[\d.]{1,9}-)v?(\d{1,3}\.\d{1,3}\.\d{1,3})\b"
    ),
    "batch": re.compile(r"\b[Bb]atch(?:[ _]?[Ii]d)?[ =:]{1,3}(\d{1,18})\b"),
    "location": re.compile(
        r"[Cc]heckpoint ?(?:[Ll]ocation|root)?[ =:'\"]{1,4}((?:[a-z][a-z0-9+.-]{0,30}:)?/[^\s,;'\"()\[\]<>]+)"
    ),
}
"""Facts of the failed query in any text; a later line is of the newer failure."""


class Failed(NamedTuple):
    """Symptoms of Spark's errors, Slackwater's own codes, and facts of the query in a text."""

    symptoms: tuple[Symptom, ...] = ()
    codes: tuple[str, ...] = ()
    read: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True)
class _Lines:
    """Separates errors of Slackwater's own, whose words mean what their code says."""

    codes: dict[str, None] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)

    def others(self, lines: Iterable[str]) -> Iterator[str]:
        """The other lines; the rest become empty lines, as lines are counted."""
        is_own = False
        for line in lines:
            # A line that is too long comes in pieces; the hint of an error follows it.
            is_own = self._is_own(line) or (is_own and line.startswith("hint: "))
            self.read |= {name: one_line(mask(value)) for name, value in _read_in(line)}
            yield "\n" if is_own else line

    def _is_own(self, line: str) -> bool:
        match = _OWN.match(line)
        if match is None or match["code"] not in error_codes():
            return False
        self.codes[match["code"]] = None
        return True


def read_failed(file: str) -> Failed:
    """``-`` is stdin. Raises NotFound for a file that cannot be read."""
    if file == "-":
        if isinstance(sys.stdin, TextIOWrapper):
            # A log can have any bytes, as a file has them below.
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        return _failed(_pieces(sys.stdin))
    try:
        with Path(file).open(encoding="utf-8", errors="replace") as text:
            return _failed(_pieces(text))
    except OSError as error:
        raise NotFound(
            "error-file",
            "The file with the text of a failure cannot be read",
            where=shortened(file),
            found=str(error.strerror or error),
            hint="give the log of the driver, or - and the text on stdin",
        ) from error


def with_errors(examined: Examined, given: Failed | None) -> Examined:
    """Adds the causes of the ``given`` failure, or else of the last run's."""
    failed = given if given is not None else _of_last_run(examined.facts)
    return replace(
        examined,
        errors=explained(failed.symptoms, examined.diagnosis),
        own_codes=failed.codes,
        unrecognised=given is not None and not (given.symptoms or given.codes),
        read=failed.read,
    )


def _of_last_run(facts: Facts | None) -> Failed:
    run = facts.snapshot.last_run if facts is not None else None
    return _failed((run.reason,)) if run is not None and run.end == "failed" and run.reason else Failed()


def _failed(lines: Iterable[str]) -> Failed:
    own = _Lines()
    symptoms = recognise(own.others(lines))
    return Failed(symptoms, tuple(own.codes), own.read)


def _read_in(line: str) -> Iterator[tuple[str, str]]:
    for name, pattern in _READ.items():
        if found := pattern.search(line):
            yield name, found[1].rstrip(".:")


def _pieces(text: TextIO) -> Iterator[str]:
    while piece := text.readline(PIECE):
        yield piece
