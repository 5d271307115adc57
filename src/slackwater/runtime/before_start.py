"""Before a stream's query is started: registers the stream, and refuses what would lose, duplicate or skip rows."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from slackwater.checkpoint.layout import offset_path
from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.owed import NO_DATA_BATCHES, owed_entry
from slackwater.checkpoint.writer import write_log
from slackwater.diagnose.number_line import findings, several_watermarks, stops
from slackwater.diagnose.refusal import refusal
from slackwater.errors import NotFound, Refused, StreamFailed
from slackwater.formats.offset_log import render_offset_entry
from slackwater.home.home import Home
from slackwater.home.stream_file import read_stream_file
from slackwater.ledger.ledger import Ledger
from slackwater.model.finding import Severity
from slackwater.model.records import GenerationRecord, StreamRecord
from slackwater.model.sink import Owner
from slackwater.recording.log_copier import LogCopier
from slackwater.recording.snapshot import SnapshotContext, read_snapshot
from slackwater.recording.stream_files import write_stream_file_of
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.query import BuiltStream
from slackwater.runtime.unread import left_unread
from slackwater.sinks.registry import is_same_sink, open_output
from slackwater.storage.open import is_uri, open_read_store, open_write_store

NOT_SHOWN = frozenset({"failed", "failed-permanently", "several-watermarks"})
"""Warnings about the last run, which this start is the answer to, and about the query, which is judged as it is now."""


@dataclass(frozen=True, slots=True)
class ReadyToStart:
    """The result of the check: the copier of the logs, the newest committed and the newest planned batch (-1: none).

    ``warnings`` are sentences that the user should read before the query starts.
    """

    copier: LogCopier
    committed: int
    planned: int
    warnings: tuple[str, ...] = ()


def register(definition: StreamDefinition, reference: str, home: Home, ledger: Ledger) -> StreamRecord:
    """Record the stream and its first generation; the caller holds its lease.

    Raises Refused where the stream has written to another sink before.
    """
    record = StreamRecord(
        definition.pipeline, definition.name, definition.sink.identity(), definition.output_mode, reference
    )
    file = read_stream_file(home, record.pipeline, record.name)
    try:
        known = ledger.find_stream(record.full_name)
    except NotFound:
        record = replace(record, id=file.id if file is not None else str(uuid.uuid4()))
        location = definition.checkpoint or str(home.checkpoint(record.pipeline, record.name, 1))
        ledger.register_stream(record)
        ledger.add_generation(GenerationRecord(record.full_name, 1, _absolute(location)))
    else:
        if ledger.entries(record.full_name, "offsets"):
            check_same_sink(known, record)
        identifier = file.id if file is not None else known.id or str(uuid.uuid4())
        record = replace(record, current_generation=known.current_generation, id=identifier)
        ledger.register_stream(record)
    write_stream_file_of(home, ledger, record.full_name)
    return record


def check(home: Home, ledger: Ledger, stream: StreamRecord) -> ReadyToStart:
    """Refuse a start that would lose or duplicate rows; then copy what the ledger lacks.

    Needs no Spark. Raises Refused or DataError, or StreamFailed where a store cannot be read.
    """
    generation = ledger.generation(stream.full_name, stream.current_generation)
    try:
        snapshot = read_snapshot(SnapshotContext(ledger, home, own_lease=True), stream)
        for finding in stops(snapshot):
            raise refusal(finding, stream.name)
        output = open_output(stream.sink)
        copier = LogCopier(ledger, stream.full_name, generation.number, open_read_store(generation.location), output)
        copier.copy()
    except OSError as error:
        raise StreamFailed(
            "store-unreadable",
            f"The checkpoint or the output of stream {stream.name} cannot be read: {error}",
            where=generation.location,
        ) from error
    marks = snapshot.marks
    if snapshot.shown:
        # Recorded before the query starts: the sink will skip a batch that it has and that is not committed.
        # Of several outputs the newest: what one of them has keeps its recorded range.
        ledger.record_sink_mark(stream.full_name, max(snapshot.shown), marks.committed)
    warnings = tuple(
        finding.text
        for finding in findings(snapshot)
        if finding.severity is Severity.WARNING and finding.code not in NOT_SHOWN
    )
    return ReadyToStart(copier, marks.committed, marks.planned, warnings)


def warnings_about(built: BuiltStream) -> tuple[str, ...]:
    """What the user should read about the query itself before it starts."""
    return tuple(finding.text for finding in several_watermarks(built.profile))


def claim_output(home: Home, stream: StreamRecord) -> None:
    """Mark the output as this stream's. Raises Refused (``sink-owned``) where it is another's."""
    open_output(stream.sink).claim(Owner(stream.id or "", stream.full_name, str(home.path)))


def plan_owed_batch(stream: StreamRecord, location: str, built: BuiltStream, ledger: Ledger) -> int | None:
    """Write the entry of the batch that Spark owes into ``offsets/``; its id, ``None`` where none is owed.

    None is owed where the newest batch left data unread: a running query would have read that next. The caller holds
    the lease, and no query runs.
    """
    store = open_write_store(location)
    enabled = built.frame.sparkSession.conf.get(NO_DATA_BATCHES, "true") != "false"
    logs = read_logs(store)
    entry = owed_entry(logs, built.profile, stream.output_mode, enabled=enabled, now_ms=ledger.now_ms())
    newest = logs.newest_offset
    if entry is None or newest is None or left_unread(built.frame, ledger, stream.full_name, newest):
        return None
    batch = logs.planned + 1
    write_log(store, offset_path(batch), render_offset_entry(entry))
    return batch


def check_same_sink(known: StreamRecord, now: StreamRecord) -> None:
    """Raises Refused where a stream's output was changed: a new directory would hold only what comes from now on."""
    if is_same_sink(known.sink, now.sink):
        return
    raise Refused(
        "sink-changed",
        f"Stream {now.full_name} has written to another sink so far",
        expected=_shown(known),
        found=_shown(now),
        hint="start from the directory that the stream was always started from, or give the changed stream a new name",
    )


def _shown(stream: StreamRecord) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(stream.sink.items()))


def _absolute(location: str) -> str:
    return location if is_uri(location) else str(Path(location).absolute())
