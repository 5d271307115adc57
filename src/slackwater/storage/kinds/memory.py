"""The memory of this process, for tests."""

from __future__ import annotations

from slackwater.storage.protocols import StoreTraits
from slackwater.storage.registry import FsspecKind

STORE = FsspecKind(
    ("memory",), StoreTraits(remote=False, atomic_rename=True, atomic_replace=True, durable=False), protocol="memory"
)
