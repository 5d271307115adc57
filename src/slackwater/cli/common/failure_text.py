"""The text of a failure: read from a file or stdin, or the reason of the last run, and joined with the diagnosis."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from slackwater.cli.common.arguments import shortened
from slackwater.cli.common.examined import Examined
from slackwater.core.errors import NotFound
from slackwater.core.facts import Facts
from slackwater.diagnose.causes import explained
from slackwater.diagnose.error_texts import recognise
from slackwater.diagnose.errors.common.symptom import Symptom

PIECE = 1 << 16


def read_symptoms(file: str) -> tuple[Symptom, ...]:
    """The symptoms in a file, or in stdin for ``-``. Raises NotFound for a file that cannot be read."""
    if file == "-":
        if isinstance(sys.stdin, TextIOWrapper):
            # A log can have any bytes, as a file has them below.
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        return recognise(_pieces(sys.stdin))
    try:
        with Path(file).open(encoding="utf-8", errors="replace") as text:
            return recognise(_pieces(text))
    except OSError as error:
        raise NotFound(
            "error-file",
            "The file with the text of a failure cannot be read",
            where=shortened(file),
            found=str(error.strerror or error),
            hint="give the log of the driver, or - and the text on stdin",
        ) from error


def with_errors(examined: Examined, given: Sequence[Symptom] | None) -> Examined:
    """With the causes of the failure that was ``given``; else of the last run, if that has failed."""
    symptoms = given if given is not None else _of_last_run(examined.facts)
    return replace(examined, errors=explained(symptoms, examined.diagnosis), unrecognised=given == ())


def _of_last_run(facts: Facts | None) -> Sequence[Symptom]:
    run = facts.snapshot.last_run if facts is not None else None
    return recognise(run.reason) if run is not None and run.end == "failed" and run.reason else ()


def _pieces(text: TextIO) -> Iterator[str]:
    while piece := text.read(PIECE):
        yield piece
