"""A position for a manual restart as people read it: offsets for stdout, messages for stderr."""

from __future__ import annotations

import json

from slackwater.app.documents.offsets import MANUAL_RESTART, instead_of
from slackwater.app.documents.values import offset_value
from slackwater.app.offsets import Position
from slackwater.plan.start_position import SourcePosition

OUTPUTS = {"same": "with the same output", "new": "with a new output", "any": "with either"}


def offset_lines(position: Position) -> list[str]:
    """One document for each source, in the plan's order: Kafka's ``startingOffsets``, else Spark's string."""
    return [json.dumps(offset_value(source.offset)) for source in position.sources]


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
    lines.append(f"instead, without loss: {instead_of(position)}")
    return lines


def _source_messages(source: SourcePosition) -> list[str]:
    if source.files_read is None and not source.files_to_come:
        return []
    read = "an unknown number of" if source.files_read is None else f"{source.files_read:,}"
    lines = [f"source {source.source} is a file source: {read} files are before this position"]
    if source.files_to_come:
        lines.append(f"the first one after it is {source.files_to_come[0].path}")
    return lines
