"""The demo's final page: the verdict first, then the number line, the plan, the rows and the manual restart."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from examples.demo.compare import Comparison
from examples.demo.data import Input
from examples.demo.places import GOLD
from examples.demo.result import DemoResult, StageKill, TablesResult
from slackwater.core.checkpoint import Marks

SHOWN_BATCHES = 6
CELL = 6


def show(result: DemoResult | TablesResult, console: Console) -> None:
    """Print the page."""
    if isinstance(result, TablesResult):
        show_tables(result, console)
        return
    show_verdict(
        console,
        equal=result.equal,
        story="Killed, upgraded and restarted",
        good="it wrote every row of an uninterrupted run, and each once.",
        bad="its output is not that of an uninterrupted run.",
    )
    _number_lines(result, console)
    show_plan(console, result.plan_text)
    _streams(result, console)
    _rows(result, console)
    _manual_restart(result, console)
    show_end(console, result.input, result.seconds, result.folder)


def number_line(marks: Marks, last: int) -> tuple[str, str]:
    """Two lines: the batches up to ``last``, and below each its marks."""
    ids = range(max(0, last - SHOWN_BATCHES + 1), last + 1)
    marked = {"o": marks.planned, "c": marks.committed, "v": marks.state, "w": marks.written}
    letters = ("".join(letter for letter, batch in marked.items() if batch == number) for number in ids)
    lead = "..." if ids.start > 0 else "   "
    batches = "".join(f"{number}".rjust(CELL, "-") for number in ids)
    return lead + batches, " " * len(lead) + "".join(text.rjust(CELL) for text in letters)


def _number_lines(result: DemoResult, console: Console) -> None:
    console.print()
    console.print(Text(f"The number line of {GOLD}", style="bold"))
    killed, end = result.marks_of(GOLD, result.before), result.marks_of(GOLD, result.after)
    lines = [
        (f"killed in batch {result.killed_batch}", killed, killed.planned),
        ("restarted", result.restarted.marks, killed.planned),
        ("run to the end", end, end.planned),
    ]
    width = max(len(name) for name, _, _ in lines)
    for name, marks, last in lines:
        batches, letters = number_line(marks, last)
        console.print(f"  {name.ljust(width)}  {batches}   next: {marks.next_batch}")
        console.print(Text(f"  {' ' * width}  ").append(letters, "bold cyan"))
    console.print("  o planned   c committed   v state   w written by the sink", style="dim")


def _streams(result: DemoResult, console: Console) -> None:
    console.print()
    table = new_table("Marks of all streams", ["", "killed", "", "", "", "end", "", "", ""])
    table.add_row("", *"ocvw", *"ocvw", style="dim")
    for before, after in zip(result.before, result.after, strict=True):
        table.add_row(before.stream, *_cells(before.marks), *_cells(after.marks))
    console.print(table)


def _rows(result: DemoResult, console: Console) -> None:
    console.print()
    share = result.rows_read_again / result.rows_read if result.rows_read else 0
    console.print(f"Rows read again: {result.rows_read_again:,} of {result.rows_read:,} ({share:.0%})")
    show_comparisons(console, "Rows against an uninterrupted run", result.comparisons)


def _manual_restart(result: DemoResult, console: Console) -> None:
    outcome = result.manual_restart
    console.print()
    console.print(Text("The popular manual restart, on a copy", style="bold"))
    console.print(f"  Upgraded code, old checkpoint: {outcome.refused}")
    console.print("  New checkpoint at the saved offsets, old output: ", end="")
    console.print(f"{outcome.lost:,} of {outcome.expected_rows:,} rows lost", style="bold red", end="")
    console.print(f", {outcome.wrong:,} wrong." if outcome.wrong else ".")
    console.print(
        f"  Its batch ids started at 0 again. The sink already had {outcome.skipped} of these {outcome.batches} ids"
    )
    console.print("  and skipped those batches silently.")


def _cells(marks: Marks) -> list[str]:
    return ["-" if mark is None else str(mark) for mark in (marks.planned, marks.committed, marks.state, marks.written)]


def show_tables(result: TablesResult, console: Console) -> None:
    """Print the page."""
    show_verdict(
        console,
        equal=result.equal,
        story="Killed at each stage, restarted and rebuilt",
        good="it wrote every row once.",
        bad="its output is not right.",
    )
    console.print()
    console.print(Text("kill -9 after the table's commit, before Spark's", style="bold"))
    for kill in result.kills:
        _kill(f"{kill.stream}, in batch {kill.batch}", kill, console)
    console.print("  o planned   c committed   v state   w written by the sink", style="dim")
    console.print()
    console.print(Text("Then its checkpoint was deleted", style="bold"))
    _kill(result.lost.stream, result.lost, console)
    show_plan(console, result.plan_text)
    console.print(f"  after it: {_marks(result.rebuilt)}")
    show_comparisons(console, "Rows against those computed in plain Python", result.comparisons)
    show_end(console, result.input, result.seconds, result.folder)


def _kill(title: str, kill: StageKill, console: Console) -> None:
    console.print(Text.assemble(f"  {title}: ", (_marks(kill.marks), "bold cyan")))
    console.print(Text(f"    status: {kill.verdict}"))
    console.print(Text(f"    typed next: {kill.next}"))


def _marks(marks: Marks) -> str:
    held = {"o": marks.planned, "c": marks.committed, "v": marks.state, "w": marks.written}
    return "  ".join(f"{letter} {'-' if batch is None else batch}" for letter, batch in held.items())


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
        console.print(Text(f"  {line}".rstrip()))


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
        console.print(f"All files are in {folder}")


def new_table(title: str, headings: Sequence[str]) -> Table:
    """A table without lines, its first column to the left."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2))
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index == 0 else "right", no_wrap=True)
    return table
