"""Records queries that Slackwater does not run, by a listener and a watcher for each."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import structlog

from slackwater.core.records import WATCHED, GenerationRecord, StreamRecord
from slackwater.diagnose.refusal import refusal
from slackwater.diagnose.rules.operation_unfinished import unfinished
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.log_copier import LogCopier
from slackwater.ledger.recording.watcher import Watcher
from slackwater.runtime.listener import ProgressRecorder, QueryLife, Recorded, make_listener
from slackwater.sinks.common.registry import open_output
from slackwater.storage.open import check_no_secret, open_read_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


log = structlog.get_logger(__name__)


def watch(spark: SparkSession, *, ledger: str | PathLike[str]) -> Watching:
    """Record every query that ``spark`` starts from now on in ``ledger`` (a path, or a database URL).

    A query is known as ``watched/<query name>``, or by its id where it has no name. Call ``close()`` at the end.
    Raises UsageError or EnvironmentMissing where the ledger cannot be opened; later errors are only logged.
    """
    return Watching(spark, Ledger.open(ledger, create=True))


class Watching:
    """A session whose queries are recorded."""

    def __init__(self, spark: SparkSession, ledger: Ledger) -> None:
        self._spark = spark
        self._ledger = ledger
        self._recorder = ProgressRecorder(ledger)
        self._watchers: dict[str, Watcher] = {}
        self._errors = 0
        self._listener = make_listener(self._recorder.put, self._started, self._terminated)
        spark.streams.addListener(self._listener)

    @property
    def errors(self) -> int:
        """How often something was not recorded; the next start copies what the checkpoint still has."""
        return self._errors + self._recorder.errors + sum(watcher.errors for watcher in self._watchers.values())

    def close(self) -> None:
        """Write what is left, then detach from the session and close the ledger."""
        self._spark.streams.removeListener(self._listener)
        for watcher in list(self._watchers.values()):
            watcher.stop()
        self._recorder.close()
        self._ledger.close()

    def _started(self, life: QueryLife) -> None:
        try:
            self._follow(life)
        except Exception as error:  # noqa: BLE001 - the outermost edge: whatever it is, the query continues
            self._errors += 1
            log.warning("a query is not recorded", query=life.name or life.id, error=str(error))

    def _terminated(self, run_id: str) -> None:
        watcher = self._watchers.get(run_id)
        if watcher is not None:
            # Not here: this is Spark's own thread, and the last pass may wait for the database.
            self._recorder.afterwards(watcher.stop)

    def _follow(self, life: QueryLife) -> None:
        query = self._spark.streams.get(life.id)
        if query is None:
            return
        execution = query._jsq.streamingQuery()  # classic Spark's JVM handle
        location = str(execution.resolvedCheckpointRoot())
        check_no_secret(location)
        sink = _sink_identity(execution)
        name = life.name or life.id
        for finding in unfinished(self._ledger.open_operation(f"{WATCHED}/{name}")):
            # The directory may be the checkpoint of another generation than the ledger has until then.
            raise refusal(finding, name)
        stream = StreamRecord(WATCHED, name, sink, str(execution.outputMode()).lower(), "")
        self._ledger.register_stream(stream)
        number = _generation(self._ledger, stream, location, life.id)
        self._recorder.follow(life.id, Recorded(stream.full_name, number))
        checkpoint, output = open_read_store(location), open_output(sink)
        watcher = Watcher(LogCopier(self._ledger, stream.full_name, number, checkpoint, output))
        watcher.start()
        self._watchers[life.run_id] = watcher


def _generation(ledger: Ledger, stream: StreamRecord, location: str, query_id: str) -> int:
    """The generation of this checkpoint. A known name with another checkpoint is a new generation."""
    known = ledger.generations(stream.full_name)
    same = [record for record in known if (record.location, record.query_id) == (location, query_id)]
    if same:
        number = same[-1].number
    else:
        number = 1 + max((record.number for record in known), default=0)
        ledger.add_generation(GenerationRecord(stream.full_name, number, location, query_id=query_id))
    ledger.set_current_generation(stream.full_name, number)
    return number


def _sink_identity(execution: Any) -> dict[str, str]:
    """A file sink's string is ``FileSink[path]``; any other sink is identified by its string."""
    sink = str(execution.sink().toString())
    if sink.startswith("FileSink[") and sink.endswith("]"):
        return {"kind": "files", "format": "", "path": sink.removeprefix("FileSink[").removesuffix("]")}
    return {"kind": sink.split("[", 1)[0]}
