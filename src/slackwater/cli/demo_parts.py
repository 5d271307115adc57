"""Parts of the demo's page that do not depend on its sinks."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from slackwater.demo.compare import Comparison
from slackwater.demo.data import Input


def show_verdict(console: Console, *, equal: bool, story: str, good: str, bad: str) -> None:
    """The first line: ``story`` is what happened, ``good`` or ``bad`` what came of it."""
    console.print()
    word, meaning, style = ("EQUAL", good, "bold green") if equal else ("NOT EQUAL", bad, "bold red")
    console.print(Text.assemble((word, style), f"  {story}, {meaning}"))


def show_plan(console: Console, text: str) -> None:
    """The page that ``slackwater plan`` printed."""
    console.print()
    console.print(Text("The plan", style="bold"))
    for line in text.splitlines():
        console.print(Text(f"  {line}".rstrip()), soft_wrap=True)


def show_comparisons(console: Console, title: str, comparisons: Sequence[Comparison]) -> None:
    """One line for each stream."""
    console.print()
    table = new_table(title, ["", "expected", "written", "missing", "extra", ""])
    for line in comparisons:
        table.add_row(
            line.stream,
            f"{line.expected_rows:,}",
            f"{line.rows:,}",
            f"{line.missing:,}",
            f"{line.extra:,}",
            "equal" if line.equal else Text("NOT EQUAL", style="bold red"),
        )
    console.print(table)


def show_end(console: Console, counted: Input, seconds: float, folder: str | None) -> None:
    """What was read, how long it took, and where everything is."""
    console.print()
    where = f"{counted.files} files" if counted.files else "a Kafka topic"
    console.print(
        f"{counted.rows:,} hourly readings of three weather stations from {where}; {counted.late} late, "
        f"{counted.malformed} malformed. {seconds:.0f} s."
    )
    if folder:
        console.print(f"All files are in {folder}", soft_wrap=True)


def new_table(title: str, headings: Sequence[str]) -> Table:
    """A table without lines, its first column to the left."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2))
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index == 0 else "right", no_wrap=True)
    return table
