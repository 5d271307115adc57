"""The document ``slackwater.offsets/2``."""

from __future__ import annotations

from typing import Any

from slackwater.app.documents.values import offset_value
from slackwater.app.offsets import Position
from slackwater.model.checkpoint_logs import SourceFile

SCHEMA = "slackwater.offsets/2"
MANUAL_RESTART = "a new checkpoint, and a query that starts to read at this position"


def offsets_document(position: Position) -> dict[str, Any]:
    """A position, and what a manual restart there would do."""
    return {
        "schema": SCHEMA,
        "stream": position.stream,
        "at": str(position.at),
        "after_batch": position.after,
        "written": position.written,
        "contributing": position.contributing,
        "running": position.running,
        "sources": [_source_fields(position, index) for index in range(len(position.sources))],
        "manual_restart": {
            "what": MANUAL_RESTART,
            "effects": [
                {
                    "output": effect.output,
                    "risk": effect.risk,
                    "text": effect.text,
                    "batches": list(effect.batches) if effect.batches else None,
                    "rows": effect.rows,
                }
                for effect in position.effects
            ],
            "instead": instead_of(position),
        },
    }


def instead_of(position: Position) -> str:
    """The command that continues without a manual restart."""
    return f"slackwater plan rebuild {position.stream}"


def _source_fields(position: Position, index: int) -> dict[str, Any]:
    source = position.sources[index]
    described = position.descriptions[index] if index < len(position.descriptions) else None
    fields: dict[str, Any] = {"source": source.source, "kind": source.kind, "description": described}
    if source.kind == "kafka":
        return fields | {"starting_offsets": offset_value(source.offset)}
    if source.kind == "files":
        return fields | {
            "log_offset": offset_value(source.offset)["logOffset"],
            "files_read": source.files_read,
            "files_to_come": [_file_fields(file) for file in source.files_to_come],
        }
    return fields | {"offset": source.offset}


def _file_fields(file: SourceFile) -> dict[str, Any]:
    return {"path": file.path, "log_offset": file.log_offset, "timestamp_ms": file.timestamp_ms}
