"""What planning and applying need of pipeline files and of Spark, as interfaces: the runtime implements them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from slackwater.core.profile import QueryProfile
from slackwater.core.program import Program
from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.core.sink import BackfillDirectory
from slackwater.core.targets import PositionTarget
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.workspace import Workspace
from slackwater.operations.plan.contributing import Code
from slackwater.sources.common.contract import Position, Served, SourceEntries, SourceRange


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
    """The present query, with a no-op sink, a staged output, a backfill directory, or the stream's own output."""

    @property
    def sink_written(self) -> Mapping[str, str] | None:
        """The output of the writer that the program has which starts the query; ``None`` for a pipeline file."""

    def writes_to(self, sink: Mapping[str, str]) -> bool:
        """Whether the code is the program that starts the query, and its writer has this output."""

    @property
    def output_mode(self) -> str:
        """The output mode of the present query."""

    def profile(self) -> QueryProfile:
        """What the query's plan shows of its state."""

    def code(self) -> Code:
        """The pipeline file that was loaded, and which rows its query reads."""

    def program(self, settings: Mapping[str, str] | None = None) -> Mapping[str, object] | None:
        """The query's program as the ledger keeps it, under these SQL settings; ``None`` where it cannot be read."""

    def compact_interval(self) -> int:
        """The session's setting for file source logs: how Spark will read a log with fewer entries than that."""

    def served_positions(self) -> Mapping[str, Served]:
        """The positions that sources serve now, by the source's place in the query."""

    def rows_served(self, span: SourceRange, was: Mapping[str, str]) -> int | None:
        """How many rows a source has now of a range that was read with the options ``was``, whatever the code.

        ``None`` where that is not known of its kind. Raises EnvironmentMissing where the source does not answer.
        """

    def positions(
        self,
        target: PositionTarget,
        current: Mapping[str, str | None],
        *,
        logs: Mapping[str, SourceEntries],
        now_ms: int,
        only_source: str | None = None,
        offsets: Mapping[str, str] | None = None,
    ) -> Mapping[str, Position]:
        """The position of each source at a target, by its place in the query; arguments as of ``runtime.positions``.

        Raises UsageError (``target``), and Refused for what a source does not have.
        """

    def run_pending(
        self,
        checkpoint: str,
        *,
        changelog: bool,
        settings: Mapping[str, str] | None = None,
        more: bool = False,
        again: bool = False,
    ) -> Replayed:
        """Run the one batch that is planned in ``checkpoint`` and not committed.

        ``changelog`` False turns RocksDB's changelog files off for this run. ``settings`` are the SQL settings of the
        run, ``None``: those of the session. ``more``: the next call is for the batch after it, with the same arguments,
        settings that its entry pins included. ``again``: the last call was for the same batch, whose commit was
        removed. Raises StreamFailed where the batch fails.
        """

    def run_staged(self, run: OperationRun) -> None:
        """Run the query into the staged output until it has caught up. Raises StreamFailed where it fails."""

    def run_backfill(self, run: OperationRun) -> None:
        """Run the one batch that is planned and not committed, into the output. Raises StreamFailed where it fails."""

    def run_into_directory(self, run: OperationRun, output: BackfillDirectory) -> None:
        """Run the backfill into a directory."""


class PipelineReader(Protocol):
    """Reads pipeline files without running them. ``reference`` is a path or a module name."""

    def digest(self, reference: str) -> str:
        """SHA-256 of the file and the project's modules that it imports. Raises PipelineError where there is none."""

    def environment_read(self, reference: str) -> tuple[str, ...]:
        """Names of the environment variables that the file reads, sorted."""

    def environment_changes(self, workspace: Workspace, stream: str, kept: Program, /) -> tuple[str, ...]:
        """What the Python functions of a program would get in a replay that is not as it was, in words."""


class QueryRuntime(PipelineReader, Protocol):
    """Loads pipeline files and starts Spark."""

    def require_spark(self) -> None:
        """Raises EnvironmentMissing where Spark or Java is missing. Starts nothing."""

    def open_replayer(
        self,
        workspace: Workspace,
        stream: StreamRecord,
        reference: str,
        on_jvm: Callable[[int], None],
        /,
        *,
        brief: bool = True,
    ) -> AbstractContextManager[Replayer]:
        """The replayer of a stream's query; Spark is started when it is first used, and ``on_jvm`` is given its pid.

        ``brief``: it analyses the query, or runs so few batches that Spark's start takes longer.

        Runs the code of the pipeline file: raises PipelineError where it fails.
        """
