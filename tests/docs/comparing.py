"""Compares what a page shows for a command with what the command prints: apart from times, ids, numbers and paths."""

import re

from tests.docs.reader import Typed

VARYING = (
    (re.compile(r"\b\d{8}T\d{6}-[0-9a-f]{6}\b"), "<plan>"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"(file:/*)?(/[\w.@-]+)+/try\b"), "<try>"),
    (re.compile(r"\d[\d,.]*"), "<number>"),
)
SHORTENED = "..."
LOOSE = ("status", "offsets", "plan", "ledger")
"""Verbs whose pages differ from run to run in more than numbers: only the first word of each line is compared."""


def normal(line: str) -> str:
    """The line without what differs from run to run."""
    for pattern, word in VARYING:
        line = pattern.sub(word, line)
    return " ".join(line.split())


def label(line: str) -> str:
    """The command in a line that has one, else the line's first word."""
    command = re.search(r"\bslackwater \w+.*", normal(line))
    return command[0] if command else normal(line).partition(" ")[0]


def differences(typed: Typed) -> list[str]:
    """Lines that the page shows and the command did not print, in order; lines too many, unless the page shortens."""
    shown = [line for line in typed.step.shown or () if line.strip()]
    printed = [line for line in typed.lines if line.strip()]
    words = typed.step.command.split()
    loose = words[0] == "slackwater" and words[1] in LOOSE
    same = label if loose else normal
    wanted = [same(line) for line in shown if line.strip() != SHORTENED]
    rest = iter([same(line) for line in printed])
    missing = [line for line in wanted if line not in rest]
    if missing or loose or typed.step.in_background or SHORTENED in [line.strip() for line in shown]:
        return [f"not printed: {line}" for line in missing]
    return [f"not shown: {line}" for line in printed[len(shown) :]]
