"""A run of a stream's query, as counted by the ledger."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import structlog

from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.operators import state_stores
from slackwater.core.errors import SlackwaterError
from slackwater.core.program import QueryProfile
from slackwater.core.records import GenerationRecord, RunRecord
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.log_copier import LogCopier
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.ledger.recording.watcher import Watcher
from slackwater.runtime.program.code_reach import environment_settings
from slackwater.runtime.replay.replay_query import InputWatermarkKeeper
from slackwater.runtime.run.before_start import program_digest
from slackwater.runtime.run.failures import SPARK_ERRORS, RunFailure, classify
from slackwater.runtime.run.listener import ProgressRecorder, RecordedQuery
from slackwater.runtime.run.no_data_batch import EndOfRun
from slackwater.runtime.run.query import BuiltStream, QueryStart, start
from slackwater.runtime.session.settings import effective_settings
from slackwater.storage.open import open_read_store
from slackwater.triggers import waits_ms

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


STORES_EVERY_S = 1.0

log = structlog.get_logger(__name__)

End = Literal["finished", "stopped", "interrupted", "failed", "not-started"]


@dataclass(frozen=True, slots=True)
class RunServices:
    """``restarts_most`` limits restarts without a committed batch; ``code`` is the pipeline file's SHA-256."""

    home: Home
    ledger: Ledger
    recorder: ProgressRecorder
    spark_version: str
    restarts_most: int
    say: Callable[[str], None]
    code: str | None = None
    accepted: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


class QueryRun:
    def __init__(
        self,
        services: RunServices,
        generation: GenerationRecord,
        built: BuiltStream,
        how: QueryStart,
        copier: LogCopier,
    ) -> None:
        """Start the query. A failed start ends the run as failed, and its error is raised."""
        self._ledger = services.ledger
        self._home = services.home
        self._generation = generation
        self._checkpoint = open_read_store(generation.location)
        self._profile: QueryProfile | None = None
        self._stores_due_at = 0.0
        self._end: EndOfRun | None = None
        self._ledger_unreachable = False
        self._run: RunRecord = services.ledger.begin_run(
            generation.stream,
            generation.number,
            services.spark_version,
            settings={
                **effective_settings(built.frame.sparkSession),
                **environment_settings(built.program, built.frame.sparkSession),
            },
            code=services.code,
            program=program_digest(built.program),
            accepted=services.accepted.get(generation.stream),
            trigger_ms=waits_ms(how.trigger),
        )
        recorded = RecordedQuery(generation.stream, generation.number, self._run.id)
        services.recorder.follow(generation.stream, recorded)
        # Before the query: killed in its first batch, only the checkpoint would have the range that was planned.
        self._watcher = Watcher(copier)
        self._watcher.start()
        try:
            keeper = InputWatermarkKeeper(
                services.ledger, generation, built.profile, built.frame.sparkSession, services.say
            )
            with keeper.starting():
                self.query: StreamingQuery = start(built, generation.location, how)
            # A sink may have named the query itself: the name of a memory table is that of its query.
            services.recorder.follow(str(self.query.id), recorded)
        except BaseException as error:
            self.end("failed", classify(error))
            raise
        if how.trigger.kind == "available-now" and not how.completes_batch:
            self._end = EndOfRun(self.query, services.ledger, generation, self._run.id)
        self._record_profile(built)

    def record_stores(self) -> None:
        if self._profile is None or time.monotonic() < self._stores_due_at:
            return
        self._stores_due_at = time.monotonic() + STORES_EVERY_S
        try:
            # Tasks create the stores of their partitions: only with a commit are all of them there.
            if self._profile.stateful and read_logs(self._checkpoint).committed < 0:
                return
            layout = {**self._profile.as_json(), "state_stores": state_stores(self._checkpoint)}
            self._ledger.update_generation(self._generation.stream, self._generation.number, layout=layout)
            # A lost ledger is restored from ``stream.json``, which therefore follows each change of a generation.
            write_stream_file_of(self._home, self._ledger, self._generation.stream)
            self._stores_due_at = math.inf
        except (SlackwaterError, OSError) as error:
            log.warning("the state stores were not recorded", stream=self._generation.stream, error=str(error))

    def record_end(self) -> None:
        if self._end is None or self._end.recorded:
            return
        unrecorded: tuple[type[Exception], ...] = (SlackwaterError, ValueError, TypeError, *SPARK_ERRORS)
        try:
            self._end.record()
        except unrecorded as error:
            # Without this record the next start asks the sources whether they have unread data.
            self._end = None
            log.warning("the end of the run was not recorded", stream=self._generation.stream, error=str(error))

    def stop_requested(self) -> bool:
        try:
            requested = self._ledger.stop_requested(self._run.id)
        except SlackwaterError as error:
            # Asked every second: one warning for an outage is enough.
            if not self._ledger_unreachable:
                log.warning("cannot read stop requests", stream=self._generation.stream, error=str(error))
            self._ledger_unreachable = True
            return False
        self._ledger_unreachable = False
        return requested

    def end(self, end: End, failure: RunFailure | None = None, reason: str | None = None) -> None:
        """End the run and copy the last log entries, but do not stop the query."""
        self._watcher.stop()
        try:
            self._ledger.end_run(
                self._run.id,
                end,
                failure.reason if failure else reason,
                failure=failure.kind if failure else None,
                failure_code=failure.code if failure else None,
            )
        except SlackwaterError as error:
            # The next run finds this one without an end and closes it.
            log.warning("a run's end was not recorded", stream=self._generation.stream, end=end, error=str(error))

    def _record_profile(self, built: BuiltStream) -> None:
        """Record the active query's profile; errors do not stop the query."""
        name, number = self._generation.stream, self._generation.number
        self._profile = built.profile
        if self._profile is None:
            return
        unrecorded: tuple[type[Exception], ...] = (SlackwaterError, OSError, *SPARK_ERRORS)
        try:
            self._ledger.update_generation(name, number, query_id=str(self.query.id), layout=self._profile.as_json())
            self._ledger.record_rows_digest(self._run.id, self._profile.rows_digest)
            write_stream_file_of(self._home, self._ledger, name)
        except unrecorded as error:
            log.warning("the query's plan was not recorded", stream=name, error=str(error))
