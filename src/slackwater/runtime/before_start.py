"""Before a stream's query is started: registers the stream, and checks its checkpoint and its output."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from slackwater.checkpoint.logs import marks as read_marks
from slackwater.errors import NotFound, StreamFailed
from slackwater.home.home import Home, StreamFile
from slackwater.ledger.ledger import Ledger
from slackwater.model.records import GenerationRecord, StreamRecord
from slackwater.recording.log_copier import LogCopier
from slackwater.runtime.guard import BeforeStart, check_before_start, check_same_sink
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.sinks.written import written_output
from slackwater.storage.open import is_uri, open_read_store


@dataclass(frozen=True, slots=True)
class ReadyToStart:
    """What a run needs of the check: who copies the logs from now on, and the newest committed batch (-1: none)."""

    copier: LogCopier
    committed: int


def register(definition: StreamDefinition, reference: str, home: Home, ledger: Ledger) -> StreamRecord:
    """Record the stream and its first generation; the caller holds its lease.

    Raises Refused where the stream has written to another sink before.
    """
    record = StreamRecord(
        definition.pipeline, definition.name, definition.sink.identity(), definition.output_mode, reference
    )
    try:
        known = ledger.find_stream(record.full_name)
    except NotFound:
        location = definition.checkpoint or str(home.checkpoint(record.pipeline, record.name, 1))
        ledger.register_stream(record)
        ledger.add_generation(GenerationRecord(record.full_name, 1, _absolute(location)))
    else:
        if ledger.entries(record.full_name, "offsets"):
            check_same_sink(known, record)
        record = replace(record, current_generation=known.current_generation)
        ledger.register_stream(record)
    _write_identity(home, record)
    return record


def check(ledger: Ledger, stream: StreamRecord) -> ReadyToStart:
    """Copy what the ledger lacks, then refuse a start that would lose or duplicate rows. Needs no Spark.

    Raises Refused, SinkUnreadable, or StreamFailed where a store cannot be read.
    """
    generation = ledger.generation(stream.full_name, stream.current_generation)
    try:
        checkpoint, output = open_read_store(generation.location), open_read_store(stream.sink["path"])
        copier = LogCopier(ledger, stream.full_name, generation.number, checkpoint, output)
        copier.copy()
        marks = replace(read_marks(checkpoint), written=written_output(stream).last_written())
    except OSError as error:
        raise StreamFailed(
            "store-unreadable",
            f"The checkpoint or the output of stream {stream.name} cannot be read: {error}",
            where=generation.location,
        ) from error
    if marks.written is not None:
        # Recorded before the query starts: the sink will skip a batch that it has and that is not committed.
        ledger.record_sink_mark(stream.full_name, marks.written, marks.committed)
    recorded = max(ledger.entries(stream.full_name, "offsets"), default=-1)
    check_before_start(BeforeStart(stream, marks, recorded, ledger.open_operation(stream.full_name)))
    return ReadyToStart(copier, marks.committed)


def _write_identity(home: Home, record: StreamRecord) -> None:
    known = home.read_stream_file(record.pipeline, record.name)
    if known is None or dict(known.sink) != dict(record.sink):
        identifier = known.id if known else str(uuid.uuid4())
        identity = StreamFile(identifier, record.current_generation, record.sink)
        home.write_stream_file(record.pipeline, record.name, identity)


def _absolute(location: str) -> str:
    return location if is_uri(location) else str(Path(location).absolute())
