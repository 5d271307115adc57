"""The document ``slackwater.operations/1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slackwater.app.documents.ledger import operation_fields
from slackwater.app.operations_view import OperationView

SCHEMA = "slackwater.operations/1"


def operations_document(operations: Sequence[OperationView], place: str) -> dict[str, Any]:
    """The operations of the ledger at ``place``."""
    return {"schema": SCHEMA, "ledger": place, "operations": [_fields(view) for view in operations]}


def _fields(view: OperationView) -> dict[str, Any]:
    return operation_fields(view.record) | {
        "stream": view.record.stream,
        "continue": view.continue_command,
        "undo": view.undo_command,
        "obstacle": view.obstacle,
    }
