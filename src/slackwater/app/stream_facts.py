"""Gathers what can be known of a stream without a JVM: its marks, its recorded past, who has read its output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from slackwater.app.workspace import Workspace
from slackwater.checkpoint.logs import marks as read_marks
from slackwater.errors import SinkUnreadable
from slackwater.formats.file_source_log import parse_file_source_log
from slackwater.ledger.lineage import METADATA, SINK, SOURCES
from slackwater.model.checkpoint_logs import SourceFile
from slackwater.model.history import History
from slackwater.model.marks import Marks
from slackwater.model.profile import QueryProfile
from slackwater.model.records import BatchRecord, GenerationRecord, StreamRecord
from slackwater.recording.log_copier import copy_new
from slackwater.sinks.contract import Output
from slackwater.sinks.registry import open_output
from slackwater.storage.open import local_path_of, open_read_store
from slackwater.storage.protocols import ReadStore


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """A stream, its generation in use, and where it stands."""

    stream: StreamRecord
    generation: GenerationRecord
    marks: Marks
    checkpoint_present: bool


def reconcile(workspace: Workspace, stream: StreamRecord) -> None:
    """Copy into the ledger what the checkpoint and the sink have and it lacks."""
    generation = workspace.ledger.generation(stream.full_name, stream.current_generation)
    copy_new(
        workspace.ledger,
        stream.full_name,
        generation.number,
        open_read_store(generation.location),
        open_output(stream.sink),
    )


def facts_of(workspace: Workspace, stream: StreamRecord) -> StreamFacts:
    """Where a stream stands. Raises SinkUnreadable where its sink cannot say what was written."""
    generation = workspace.ledger.generation(stream.full_name, stream.current_generation)
    checkpoint = open_read_store(generation.location)
    written = open_output(stream.sink).last_written()
    marks = replace(read_marks(checkpoint), written=written)
    if written is not None:
        workspace.ledger.record_sink_mark(stream.full_name, written, marks.committed)
    return StreamFacts(stream, generation, marks, _is_present(checkpoint))


def marks_or_none(workspace: Workspace, stream: StreamRecord) -> tuple[Marks, SinkUnreadable | None]:
    """The marks for a report: a sink that cannot be read leaves ``written`` open, and the reason beside it."""
    generation = workspace.ledger.generation(stream.full_name, stream.current_generation)
    marks = read_marks(open_read_store(generation.location))
    try:
        return replace(marks, written=open_output(stream.sink).last_written()), None
    except SinkUnreadable as error:
        return marks, error


def profile_of(generation: GenerationRecord) -> QueryProfile | None:
    """What the ledger kept of the query's plan, ``None`` where no run recorded it."""
    return QueryProfile.from_json(generation.layout) if generation.layout else None


def history_of(workspace: Workspace, stream: StreamRecord) -> History:
    """The stream's recorded past, from the ledger; ``reconcile`` has put the checkpoint's own logs there first."""
    ledger, name = workspace.ledger, stream.full_name
    batches = ledger.batches(name)
    skipped = _skipped(workspace, stream, batches)
    sources = [log for log in ledger.logs(name) if log.startswith(SOURCES)]

    def texts(log: str) -> dict[int, str]:
        return {entry: line.text for entry, line in ledger.lines(name, log).items()}

    return History(
        metadata=texts(METADATA).get(0),
        offsets=texts("offsets"),
        commits=texts("commits"),
        written=texts(SINK),
        sources={log.removeprefix(SOURCES): texts(log) for log in sources},
        event_time_max_ms={b.batch_id: b.event_time_max_ms for b in batches if b.event_time_max_ms is not None},
        input_rows={batch.batch_id: batch.input_rows for batch in batches if batch.batch_id not in skipped},
        skipped=skipped,
    )


def _skipped(workspace: Workspace, stream: StreamRecord, batches: Sequence[BatchRecord]) -> frozenset[int]:
    """Batches that were, or may have been, run again when the sink held them already.

    The file sink skips such a batch without looking at its rows: the second run tells no rows and no event times. Each
    start of a run looks at both marks first; of a query that was only watched, an empty second run is all there is.
    """
    marks = workspace.ledger.sink_marks(stream.full_name)
    held = {
        batch for mark in marks if mark.committed is not None for batch in range(mark.committed + 1, mark.written + 1)
    }
    if workspace.ledger.last_run(stream.full_name) is None:
        held |= {batch.batch_id for batch in batches}
    read = {batch.batch_id for batch in batches if batch.input_rows or all(s.start == s.end for s in batch.sources)}
    return frozenset(held - read)


def readers_of(workspace: Workspace, stream: StreamRecord, files: Sequence[str]) -> list[str]:
    """Other streams of the home that have read one of these files of the stream's output."""
    if not files:
        return []
    wanted, output = set(files), open_output(stream.sink)
    others = [other for other in workspace.ledger.streams() if other.full_name != stream.full_name]
    return [other.full_name for other in others if _has_read(workspace, other, wanted, output)]


def missing_files(paths: Sequence[str]) -> list[str]:
    """Those of a file source's files that are no longer there."""
    return [path for path in paths if not _file_exists(path)]


def _has_read(workspace: Workspace, stream: StreamRecord, wanted: set[str], output: Output) -> bool:
    reconcile(workspace, stream)
    logs = [log for log in workspace.ledger.logs(stream.full_name) if log.startswith(SOURCES)]
    lines = (line for log in logs for line in workspace.ledger.lines(stream.full_name, log).values())
    return any(
        output.name_of(file.path) in wanted
        for line in lines
        if not line.text.startswith("\0")
        for file in _files(line.text)
    )


def _files(text: str) -> Sequence[SourceFile]:
    return parse_file_source_log(text.encode()) if '"path"' in text else ()


def _file_exists(uri: str) -> bool:
    path = local_path_of(uri) or uri
    folder, _, name = path.rpartition("/")
    return open_read_store(folder).exists(name)


def _is_present(checkpoint: ReadStore) -> bool:
    return bool(checkpoint.list("offsets"))
