"""Use case: the operations of a home or of one stream, each with the commands that continue and undo it.

Nothing is written. Whether an operation can be undone is looked up as ``slackwater undo`` does it.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.app.undo_operation import ENDED_WITHOUT_EFFECT, check_undoable
from slackwater.app.workspace import Workspace
from slackwater.diagnose.number_line import open_operation
from slackwater.diagnose.words import undo_command
from slackwater.errors import SlackwaterError
from slackwater.lease.view import view_of
from slackwater.model.actions import Action, Inverse
from slackwater.model.records import UNDOING, OperationRecord


@dataclass(frozen=True, slots=True)
class OperationView:
    """An operation with the commands that finish it and take it back, ``None`` where there is none.

    ``obstacle``: why an operation whose effect is in use cannot be undone now.
    """

    record: OperationRecord
    continue_command: str | None = None
    undo_command: str | None = None
    obstacle: str | None = None


def operations_view(workspace: Workspace, name: str | None = None) -> tuple[OperationView, ...]:
    """The operations of one stream, or of all streams, oldest first. Raises NotFound for an unknown stream."""
    ledger = workspace.ledger
    streams = ledger.streams() if name is None else [ledger.find_stream(name)]
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
        following = next((finding.next for finding in open_operation(record, None)), None)
        return OperationView(record, following, None if record.status == UNDOING else undo)
    try:
        check_undoable(workspace, record, _Unseen())
    except SlackwaterError as error:
        return OperationView(record, obstacle=error.message)
    return OperationView(record, undo_command=undo)


class _Unseen:
    """The display of an operation that is only looked at."""

    def say(self, text: str) -> None: ...

    def action(self, action: Action | Inverse) -> None: ...

    def batch(self, batch: int) -> None: ...
