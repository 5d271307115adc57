"""The document ``slackwater.prune/1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slackwater.app.prune import Prunable

SCHEMA = "slackwater.prune/1"


def prune_document(removed: Sequence[Prunable]) -> dict[str, Any]:
    """What was deleted, by stream."""
    return {
        "schema": SCHEMA,
        "streams": [
            {
                "stream": one.stream,
                "generations": list(one.generations),
                "operations": list(one.operations),
                "folders": [str(folder) for folder in one.folders],
                "bytes": one.bytes,
            }
            for one in removed
        ],
    }
