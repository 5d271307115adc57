"""What applying a plan needs of Spark, as an interface: the runtime implements it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from slackwater.home.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.model.profile import QueryProfile
from slackwater.model.records import GenerationRecord, StreamRecord
from slackwater.model.sink import SideOutput
from slackwater.plan.contributing import Code


@dataclass(frozen=True, slots=True)
class Replayed:
    """What Spark reported of the one batch it ran."""

    batch_id: int
    input_rows: int


@dataclass(frozen=True, slots=True)
class OperationRun:
    """A run of the query with the checkpoint of ``generation``, as an action of ``operation``.

    ``epoch`` is the fence number of the lease under which it runs.
    """

    generation: GenerationRecord
    stream: StreamRecord
    operation: str
    epoch: int
    ledger: Ledger
    home: Home


class Replayer(Protocol):
    """The present query, with a no-op sink, with a staged output, with a side output, or with that of the stream."""

    def profile(self) -> QueryProfile:
        """What the query's plan shows of its state."""

    def code(self) -> Code:
        """The pipeline file that was loaded, and which rows its query reads."""

    def compact_interval(self) -> int:
        """The session's setting for file source logs: how Spark will read a log with fewer entries than that."""

    def earliest_offsets(self) -> Mapping[str, str]:
        """The oldest positions that sources with positions (Kafka) still serve, by the source's place in the query."""

    def run_pending(self, checkpoint: str, *, changelog: bool, settings: Mapping[str, str] | None = None) -> Replayed:
        """Run the one batch that is planned in ``checkpoint`` and not committed.

        ``changelog`` False turns RocksDB's changelog files off for this run. ``settings`` are the SQL settings of the
        run, ``None``: those of the session. Raises StreamFailed where the batch fails.
        """

    def run_staged(self, run: OperationRun) -> None:
        """Run the query into the staged output until it has caught up. Raises StreamFailed where it fails."""

    def run_backfill(self, run: OperationRun) -> None:
        """Run the one batch that is planned and not committed, into the output. Raises StreamFailed where it fails."""

    def run_aside(self, run: OperationRun, output: SideOutput) -> None:
        """The same into a side output."""
