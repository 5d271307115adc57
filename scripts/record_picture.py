"""Types the README's first commands and draws what they print, for its picture: python -m scripts.record_picture"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.docs.reader import ROOT, Reader, Typed, steps_of

PICTURE = ROOT / "docs" / "images" / "rebuild.svg"
COLUMNS = 100
AROUND = {"slackwater init try && cd try", "slackwater status"}
"""Commands of the start that the picture does not show."""
LINES_MAX, FIRST, LAST = 5, 2, 2
SHOWN = re.compile(r"^(?!.*\b(WARN|log4j|Setting default log level|To adjust logging level)\b).*\S")


def record(folder: Path) -> str:
    """The picture as SVG: each command of the README's start, with the first and last lines that it prints."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    steps = [step for step in steps_of(readme.partition("## Or write a pipeline")[0]) if step.command not in AROUND]
    console = Console(width=COLUMNS, record=True, file=sys.stderr, force_terminal=True)
    with Reader(folder) as reader:
        reader.type(steps_of("```sh\nslackwater init try && cd try\n```")[0])
        for step in steps:
            console.print(Text(f"$ {step.command.partition('  #')[0]}", style="bold cyan"))
            for line in _shown(reader.type(step), folder):
                console.print(Text(line, no_wrap=True, overflow="ellipsis"))
    return console.export_svg(title="slackwater")


def _shown(typed: Typed, folder: Path) -> list[str]:
    lines = [line.replace(f"{folder}/try/", "") for line in typed.lines if SHOWN.match(line)]
    if typed.step.command.startswith("slackwater plan"):
        return [*lines[: lines.index("notes")], lines[-1]]
    if len(lines) <= LINES_MAX:
        return lines
    return [*lines[:FIRST], "...", *lines[-LAST:]]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        PICTURE.write_text(record(Path(name)), encoding="utf-8")
    sys.stderr.write(f"{PICTURE} was written; look at it before you commit it\n")
