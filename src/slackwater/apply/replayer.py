"""What applying a rebuild needs of Spark, as an interface; the runtime implements it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from slackwater.model.profile import QueryProfile


@dataclass(frozen=True, slots=True)
class Replayed:
    """The batch that Spark ran, as its progress event reports it; ``batch_id`` is -1 where it ran none."""

    batch_id: int
    input_rows: int


class Replayer(Protocol):
    """The upgraded query with a no-op sink."""

    def profile(self) -> QueryProfile:
        """What the query's plan shows, under the present session's settings."""

    def compact_interval(self) -> int:
        """The session's setting for file source logs: how Spark will read a log with fewer entries than that."""

    def run_pending(self, checkpoint: str, *, changelog: bool, settings: Mapping[str, str] | None = None) -> Replayed:
        """Run the one batch that is planned in ``checkpoint`` but not committed. Raises StreamFailed where it fails.

        ``changelog`` False turns RocksDB's changelog files off for this batch. ``settings`` are the SQL settings of
        the run that executed the batch (``RunRecord.settings``); ``None`` means those of the present session.
        """
