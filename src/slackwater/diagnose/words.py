"""Commands and ranges as findings name them."""

from __future__ import annotations

import shlex

from slackwater.model.records import leader_id
from slackwater.model.snapshot import Snapshot


def batch_range(first: int, last: int) -> str:
    """``batch 7``, or ``batches 7..9``."""
    return f"batch {first}" if first == last else f"batches {first}..{last}"


def run_command(snapshot: Snapshot) -> str | None:
    """The command that starts the stream's pipeline; ``None`` where the user's own program runs the query."""
    if snapshot.stream.is_watched:
        return None
    return f"slackwater run {shlex.quote(snapshot.stream.pipeline_file or 'FILE')}"


def undo_command(operation: str) -> str:
    """The command that undoes an operation, or finishes an undo that was interrupted: always the whole operation."""
    return f"slackwater undo {leader_id(operation)} --yes"


def rebuild_command(snapshot: Snapshot) -> str:
    """The command that plans a rebuild of the stream."""
    code = " --pipeline FILE" if snapshot.stream.is_watched else ""
    return f"slackwater plan rebuild {snapshot.stream.full_name}{code}"
