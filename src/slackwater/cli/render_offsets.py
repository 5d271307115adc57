"""A position for a manual restart: the offsets for stdout, the messages for stderr, both in one document."""

from __future__ import annotations

import json
from typing import Any

from slackwater.app.offsets import Position
from slackwater.model.checkpoint_logs import SourceFile
from slackwater.plan.start_position import SourcePosition

SCHEMA = "slackwater.offsets/2"
MANUAL_RESTART = "a new checkpoint, and a query that starts to read at this position"
OUTPUTS = {"same": "with the same output", "new": "with a new output", "any": "with either"}


def offset_lines(position: Position) -> list[str]:
    """One document for each source, in the plan's order: Kafka's ``startingOffsets``, else Spark's string."""
    return [json.dumps(_json(source)) if source.offset is not None else "null" for source in position.sources]


def messages(position: Position) -> list[str]:
    """Where the position is, and what a manual restart there would do."""
    where = f"after batch {position.after}" if position.after >= 0 else "before batch 0, where the stream started"
    lines = [f"{position.stream}, {position.at}: {where}"]
    if position.running:
        lines.append("the stream is running: its position is moving")
    for source in position.sources:
        lines += _source_messages(source)
    lines.append(f"a manual restart ({MANUAL_RESTART}) would do this:")
    lines += [f"  {OUTPUTS[effect.output]}, {effect.risk}: {effect.text}" for effect in position.effects]
    lines.append(f"instead, without loss: {_instead(position)}")
    return lines


def offsets_document(position: Position) -> dict[str, Any]:
    """The document ``slackwater.offsets/2``; docs/json.md describes every field."""
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
            "instead": _instead(position),
        },
    }


def _instead(position: Position) -> str:
    return f"slackwater plan rebuild {position.stream}"


def _json(source: SourcePosition) -> Any:
    try:
        return json.loads(source.offset or "null")
    except ValueError:
        # Some sources write no JSON; as a JSON string it is still one document a line.
        return source.offset


def _source_messages(source: SourcePosition) -> list[str]:
    if source.files_read is None and not source.files_to_come:
        return []
    read = "an unknown number of" if source.files_read is None else f"{source.files_read:,}"
    lines = [f"source {source.source} is a file source: {read} files lie before this position"]
    if source.files_to_come:
        lines.append(f"the first one after it is {source.files_to_come[0].path}")
    return lines


def _source_fields(position: Position, index: int) -> dict[str, Any]:
    source = position.sources[index]
    described = position.descriptions[index] if index < len(position.descriptions) else None
    fields: dict[str, Any] = {"source": source.source, "kind": source.kind, "description": described}
    if source.kind == "kafka":
        return fields | {"starting_offsets": _json(source)}
    if source.kind == "files":
        return fields | {
            "log_offset": _json(source)["logOffset"],
            "files_read": source.files_read,
            "files_to_come": [_file_fields(file) for file in source.files_to_come],
        }
    return fields | {"offset": source.offset}


def _file_fields(file: SourceFile) -> dict[str, Any]:
    return {"path": file.path, "log_offset": file.log_offset, "timestamp_ms": file.timestamp_ms}
