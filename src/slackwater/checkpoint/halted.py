"""A checkpoint whose files are being replaced: its ``metadata`` is a line that Spark refuses to start on.

Fact: ``StreamMetadata.read`` throws for content that is no JSON, and a query whose ``metadata`` is absent would start
with a new id.
"""

from __future__ import annotations

from slackwater.checkpoint.layout import METADATA
from slackwater.storage.protocols import ReadStore

_HALT = b"slackwater_is_replacing_this_checkpoint"
"""One word: Spark's error quotes the first, and nothing of what follows."""


def halted_by(operation: str) -> bytes:
    """The content of ``metadata`` meanwhile."""
    return _HALT + f" slackwater undo {operation} goes back\n".encode()


def is_halted(store: ReadStore) -> bool:
    """Whether the files of a checkpoint are being replaced by an operation, or were when that was killed."""
    try:
        return store.read(METADATA).startswith(_HALT)
    except FileNotFoundError:
        return False
