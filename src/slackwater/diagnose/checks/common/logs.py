"""Facts about the logs of a checkpoint that several checks compare."""

from __future__ import annotations

from slackwater.core.facts import CheckpointSeen


def has_gaps_by_design(checkpoint: CheckpointSeen) -> bool:
    """Whether both logs lack the same batches, as asynchronous progress tracking leaves them (performance tips)."""
    offsets, commits = set(checkpoint.offset_ids), set(checkpoint.commit_ids)
    if not commits or (offsets ^ commits) - {max(offsets, default=-1)}:
        return False
    return len(commits) < max(commits) - min(commits) + 1
