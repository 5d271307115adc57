"""The demo's final page with tables as sinks: the verdict first, then each kill, the plan and the rows."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from slackwater.cli.demo_parts import show_comparisons, show_end, show_plan, show_verdict
from slackwater.demo.result import StageKill, TablesResult
from slackwater.model.marks import Marks


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
    console.print(Text(f"    status: {kill.verdict}"), soft_wrap=True)
    console.print(Text(f"    typed next: {kill.next}"), soft_wrap=True)


def _marks(marks: Marks) -> str:
    held = {"o": marks.planned, "c": marks.committed, "v": marks.state, "w": marks.written}
    return "  ".join(f"{letter} {'-' if batch is None else batch}" for letter, batch in held.items())
