"""The operations of a home or stream, with commands to continue and undo them. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import out, prepare, print_json, timestamp
from slackwater.cli.verbs.ledger import WIDE, operation_fields, table_of
from slackwater.core.commands import undo_command
from slackwater.core.errors import SlackwaterError
from slackwater.core.records import UNDOING, OperationRecord
from slackwater.diagnose.checks.stream import unfinished
from slackwater.ledger.lease import view_of
from slackwater.ledger.workspace import Workspace, find_stream, open_workspace
from slackwater.operations.apply.undo_operation import ENDED_WITHOUT_EFFECT, check_undoable

SCHEMA = "slackwater.operations/1"


@dataclass(frozen=True, slots=True)
class OperationView:
    """``obstacle``: why it cannot be undone now."""

    record: OperationRecord
    continue_command: str | None = None
    undo_command: str | None = None
    obstacle: str | None = None


def operations_view(workspace: Workspace, name: str | None = None) -> tuple[OperationView, ...]:
    """Operations of a stream, or of all, oldest first. Raises NotFound."""
    ledger = workspace.ledger
    streams = ledger.streams() if name is None else [find_stream(ledger, name)]
    records = [record for stream in streams for record in ledger.operations(stream.full_name)]
    return tuple(_view(workspace, record) for record in sorted(records, key=lambda one: (one.started_ms, one.id)))


def _view(workspace: Workspace, record: OperationRecord) -> OperationView:
    if record.status in ENDED_WITHOUT_EFFECT:
        return OperationView(record)
    lease = view_of(workspace.ledger.lease(record.stream), workspace.ledger.now_ms())
    if lease.state == "held" and lease.record is not None:
        return OperationView(record, obstacle=f"{lease.record.purpose} is in progress")
    undo = undo_command(record.id)
    if record.ended_ms is None:
        session = workspace.ledger.find_stream(record.stream).session
        following = next((finding.next for finding in unfinished(record, None, session)), None)
        return OperationView(record, following, None if record.status == UNDOING else undo)
    try:
        check_undoable(workspace, record)
    except SlackwaterError as error:
        return OperationView(record, obstacle=error.message)
    return OperationView(record, undo_command=undo)


def operations_document(operations: Sequence[OperationView], place: str) -> dict[str, Any]:
    return {"schema": SCHEMA, "ledger": place, "operations": [_fields(view) for view in operations]}


def _fields(view: OperationView) -> dict[str, Any]:
    return operation_fields(view.record) | {
        "stream": view.record.stream,
        "continue": view.continue_command,
        "undo": view.undo_command,
        "obstacle": view.obstacle,
    }


def operations_page(operations: Sequence[OperationView], place: str) -> Group:
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


def show_operations(stream: str | None, home: str | None, shown_as: Format) -> int:
    with open_workspace(prepare(home, shown_as)) as workspace:
        views, place = operations_view(workspace, stream), workspace.ledger.place
    if shown_as is Format.JSON:
        print_json(operations_document(views, place))
    else:
        out(width_of_files=WIDE).print(operations_page(views, place))
    return 0
