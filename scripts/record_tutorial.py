"""Runs the tutorial and writes what its commands print into it: python -m scripts.record_tutorial"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from socket import gethostname

from tests.docs.reader import BLOCK, ROOT, Reader, Typed, steps_of

TUTORIAL = ROOT / "docs" / "tutorial.md"
SHOWN_FOLDER = "/home/me"
LINES_MAX, FIRST, LAST = 8, 4, 3


def record(page: str, folder: Path) -> str:
    """The page with the output of each command as it is printed now."""
    with Reader(folder) as reader:
        outputs = iter([reader.type(step) for step in steps_of(page)])

    def block(match: re.Match[str]) -> str:
        steps = steps_of(match[0])
        lines = [line for step in steps for line in (f"$ {step.command}", *_shown(next(outputs), folder))]
        return "\n".join([f"```{match['language']}", *lines, "```"])

    return BLOCK.sub(block, page)


def _shown(typed: Typed, folder: Path) -> list[str]:
    lines = [
        line.replace(str(folder), SHOWN_FOLDER).replace(f" on {gethostname()} ", " on host ") for line in typed.lines
    ]
    if typed.step.command.startswith("slackwater run") and len(lines) > LINES_MAX:
        return [*lines[:FIRST], "...", *lines[-LAST:]]
    return lines


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name, "reader")
        empty.mkdir()
        TUTORIAL.write_text(record(TUTORIAL.read_text(encoding="utf-8"), empty), encoding="utf-8")
    sys.stderr.write(f"{TUTORIAL} was written; read it again before you commit it\n")
