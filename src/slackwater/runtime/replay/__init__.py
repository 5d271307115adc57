"""Replays recorded batches into a new checkpoint; this module loads the pipeline and starts Spark for that."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slackwater.core.program import Program
from slackwater.core.records import StreamRecord
from slackwater.diagnose.program_changes import environment_changes
from slackwater.ledger.recording.history import settings_of_state
from slackwater.ledger.workspace import Workspace
from slackwater.runtime.loader import digest, environment_read, load
from slackwater.runtime.program.code_reach import present_environment
from slackwater.runtime.session import given_to, require_spark, session_options

if TYPE_CHECKING:
    from slackwater.runtime.replay.replay import SparkReplayer


@dataclass(frozen=True, slots=True)
class SparkRuntime:
    say: Callable[[str], None]
    spark: Mapping[str, str] = field(default_factory=dict)
    master: str | None = None

    def digest(self, reference: str) -> str:
        return digest(reference)

    def environment_read(self, reference: str) -> tuple[str, ...]:
        return environment_read(reference)

    def environment_changes(self, workspace: Workspace, stream: str, kept: Program, /) -> tuple[str, ...]:
        recorded = settings_of_state(workspace.ledger, stream) or {}
        present = present_environment(kept, {**workspace.settings.spark, **self.spark}, os.environ, recorded)
        return tuple(change.text for change in environment_changes(kept, replace(kept, environment=present)))

    def require_spark(self) -> None:
        """Raises EnvironmentMissing without Spark or Java. Starts nothing."""
        require_spark()

    def open_replayer(
        self,
        workspace: Workspace,
        stream: StreamRecord,
        reference: str,
        on_jvm: Callable[[int], None],
        /,
        *,
        brief: bool = True,
    ) -> SparkReplayer:
        from slackwater.runtime.replay.replay import SparkReplayer  # noqa: PLC0415 - heavy; most plans need no Spark

        loaded = load(reference, workspace.ledger, given_to(workspace.settings, self.master, self.spark))
        return SparkReplayer(
            loaded,
            stream.name,
            session_options(loaded, workspace.settings, self.master, self.spark, brief=brief),
            home=workspace.home.given,
            say=self.say,
            on_jvm=on_jvm,
            recorded=workspace.recorded_settings(stream.full_name),
        )
