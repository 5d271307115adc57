"""Interfaces to pipeline files and Spark, implemented by the runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from slackwater.core.program import Program, QueryProfile
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
    batch_id: int
    input_rows: int


@dataclass(frozen=True, slots=True)
class OperationRun:
    generation: GenerationRecord
    stream: StreamRecord
    operation: str
    epoch: int
    ledger: Ledger
    home: Home


class Replayer(Protocol):
    """The present query."""

    @property
    def sink_written(self) -> Mapping[str, str] | None:
        """``None`` for a pipeline file, which has no writer."""

    def writes_to(self, sink: Mapping[str, str]) -> bool:
        """Whether a program starts the query with this output."""

    @property
    def output_mode(self) -> str:
        """The output mode of the present query."""

    def profile(self) -> QueryProfile:
        """The state of the present query, from its plan."""

    def code(self) -> Code:
        """The loaded pipeline file, and which rows its query reads."""

    def program(self, settings: Mapping[str, str] | None = None) -> Mapping[str, object] | None:
        """The present query's program; ``None`` if it cannot be read."""

    def compact_interval(self) -> int:
        """The session's setting, by which Spark reads shorter file source logs."""

    def served_positions(self) -> Mapping[str, Served]:
        """The positions that sources serve now, by place in the query."""

    def rows_served(self, span: SourceRange, was: Mapping[str, str]) -> int | None:
        """The rows that the source serves now in a range; ``None``: unknown. ``was``: options of the recorded read.

        Raises EnvironmentMissing if the source does not answer.
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
        """The positions by place in the query; arguments as of ``runtime.replay.positions``.

        Raises UsageError (``target``), and Refused for positions that a source has lost.
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
        """Run the batch that is planned and not committed.

        ``changelog`` False turns RocksDB's changelog files off. ``settings`` ``None``: the session's. ``more``: the
        next call is for the following batch with the same settings. ``again``: the last call ran the same batch, whose
        commit was removed. Raises StreamFailed.
        """

    def run_staged(self, run: OperationRun) -> None:
        """Raises StreamFailed."""

    def run_backfill(self, run: OperationRun) -> None:
        """Run the planned batch into the output. Raises StreamFailed."""

    def run_into_directory(self, run: OperationRun, output: BackfillDirectory) -> None:
        """Run the backfill into a directory."""


class QueryRuntime(Protocol):
    """The runtime. ``reference`` is a path or a module name; the file is not run."""

    def digest(self, reference: str) -> str:
        """SHA-256 of the file and the project's imported modules. Raises PipelineError."""

    def environment_read(self, reference: str) -> tuple[str, ...]:
        """Sorted names of the environment variables that the file reads."""

    def environment_changes(self, workspace: Workspace, stream: str, kept: Program, /) -> tuple[str, ...]:
        """Changes that a replay would make for Python functions, in words."""

    def require_spark(self) -> None:
        """Raises EnvironmentMissing if Spark or Java is missing. Starts nothing."""

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
        """Spark starts on first use, and ``on_jvm`` gets its pid.

        ``brief``: starting Spark takes longer than its work. Runs the pipeline file's code: raises PipelineError if it
        fails.
        """
