"""The page of ``slackwater ledger --operations``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slackwater.app.operations_view import OperationView
from slackwater.cli.render_ledger import table_of
from slackwater.cli.render_words import timestamp


def operations_page(operations: Sequence[OperationView], place: str) -> Group:
    """The operations, then what can be done about each."""
    if not operations:
        return Group(Text(f"no operation is recorded: {place}"))
    table = table_of("operation", "stream", "goal", "status", "started", "ended", "summary")
    for view in operations:
        one = view.record
        started, ended = timestamp(one.started_ms), timestamp(one.ended_ms)
        table.add_row(f"  {one.id}", one.stream, one.goal, one.status, started, ended, one.summary)
    parts: list[Text | Table] = [Text("operations", style="dim"), table]
    ways = [(view.record.id, *way) for view in operations for way in _ways(view)]
    if ways:
        commands = table_of("operation", "", "")
        for identifier, name, text in ways:
            commands.add_row(f"  {identifier}", name, text)
        parts += [Text(), Text("continue and undo", style="dim"), commands]
    return Group(*parts)


def _ways(view: OperationView) -> Iterator[tuple[str, str]]:
    if view.continue_command is not None:
        yield "continue", view.continue_command
    if view.undo_command is not None:
        yield "undo", view.undo_command
    if view.obstacle is not None:
        yield "no undo", view.obstacle
