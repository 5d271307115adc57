"""What the sources of a stream can still serve, looked up when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slackwater.storage.open import local_path_of, open_read_store


@dataclass(frozen=True, slots=True)
class StoreReach:
    """Files by a check on their store; ``positions`` are the earliest offsets by source, as far as they are known."""

    positions: Mapping[str, str] = field(default_factory=dict)

    def exists(self, path: str) -> bool:
        """Whether a source file exists; ``path`` is the URI or path as Spark recorded it."""
        folder, _, name = (local_path_of(path) or path).rpartition("/")
        return open_read_store(folder or "/").exists(name)

    def earliest(self, source: str) -> str | None:
        """The oldest position that a source still serves, as an offset string; ``None`` where it is unknown."""
        return self.positions.get(source)
