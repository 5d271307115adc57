"""What applying a rebuild needs of Spark, as an interface: the runtime fulfils it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from slackwater.model.profile import QueryProfile


@dataclass(frozen=True, slots=True)
class Replayed:
    """What Spark reported of the one batch it ran."""

    batch_id: int
    input_rows: int


class Replayer(Protocol):
    """The upgraded query with a sink that lets everything go."""

    def profile(self) -> QueryProfile:
        """What the query's plan says of its state."""

    def compact_interval(self) -> int:
        """The session's setting for file source logs: how Spark will read a log with fewer entries than that."""

    def run_pending(self, checkpoint: str, *, changelog: bool) -> Replayed:
        """Run the one batch that is planned in ``checkpoint`` but not committed. ``changelog`` False turns RocksDB's
        changelog files off for this run. Raises StreamFailed where the batch fails."""
