"""``slackwater ledger``: the records of streams, generations, runs, operations and batches. Reads only."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from slackwater.cli.common.arguments import Format, natural_or_none
from slackwater.cli.common.console import Document, copied, iso, number, prepare, run_document, shown_time, times
from slackwater.cli.common.pages import blocks, heading, labelled, show
from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.commands import command, undo_command
from slackwater.core.errors import FormatError, SlackwaterError, UsageError
from slackwater.core.masking import brief
from slackwater.core.records import UNDOING, OperationRecord, StreamRecord
from slackwater.core.sink import newest_batch
from slackwater.core.units import duration_text
from slackwater.diagnose.checks.stream import unfinished
from slackwater.formats.text_log import parse_offset_entry
from slackwater.ledger.lease import KILLED, end_of, view_of
from slackwater.ledger.recording.history import shares
from slackwater.ledger.workspace import Workspace, find_stream, open_workspace
from slackwater.sinks.common.registry import open_output

NEWEST_BATCHES = 20
_RANGE = re.compile(r"(?P<first>[0-9]*)(?:(?P<dots>\.\.)(?P<last>[0-9]*))?")
SCHEMA = "slackwater.ledger/1"
OPERATIONS_SCHEMA = "slackwater.operations/1"
RUNS_SHOWN = 10
_Range = tuple[int | None, int | None]
"""The first and the last batch; ``None`` is open."""
_Ends = tuple[OffsetEntry | None, OffsetEntry | None]


def ledger(*, stream: str | None, batches: str | None, operations: bool, home: str | None, shown_as: Format) -> int:
    settings = prepare(home, shown_as)
    if operations:
        with open_workspace(settings) as workspace:
            document = operations_document(workspace, stream)
        show(shown_as, document, lambda: operations_page(document))
        return 0
    if batches is not None and stream is None:
        raise UsageError(
            "batches-of-what", "--batches needs a stream", hint=command("ledger", "STREAM", "--batches", batches)
        )
    wanted = parse_range(batches) if batches is not None else None
    with open_workspace(settings) as workspace:
        document = ledger_document(workspace, stream, wanted)
    show(shown_as, document, lambda: ledger_page(document))
    return 0


def parse_range(text: str) -> _Range:
    """``3..7``, ``3..``, ``..7``, ``..`` or ``5``. Raises UsageError."""
    match = _RANGE.fullmatch(text.strip())
    ends = filter(None, match.group("first", "last")) if match is not None else ()
    if match is None or not match[0] or None in map(natural_or_none, ends):
        raise UsageError(
            "batch-range",
            "A range of batches cannot be parsed",
            expected="a range such as 3..7, 3.., ..7 or 5",
            found=brief(repr(text)),
            hint=command("ledger", "STREAM", "--batches", "3..7"),
        )
    first = natural_or_none(match["first"])
    last = natural_or_none(match["last"] or "") if match["dots"] else first
    if first is not None and last is not None and first > last:
        raise UsageError(
            "batch-range",
            "A range of batches starts with the older batch",
            found=repr(text),
            hint=f"the older one first: {last}..{first}",
        )
    return first, last


def ledger_document(workspace: Workspace, name: str | None, wanted: _Range | None) -> Document:
    """All streams without batches, or a stream with the batches in ``wanted`` (``None``: the newest few)."""
    if name is None:
        streams = [_stream_fields(workspace, stream) for stream in workspace.ledger.streams()]
    else:
        stream = find_stream(workspace.ledger, name)
        streams = [_stream_fields(workspace, stream) | {"batches": _batches(workspace, stream, wanted)}]
    return {"schema": SCHEMA, "ledger": workspace.ledger.place, "streams": streams}


def _stream_fields(workspace: Workspace, stream: StreamRecord) -> Document:
    ledger, name = workspace.ledger, stream.full_name
    lease = view_of(ledger, name)
    generations = []
    for one in ledger.generations(name):
        parent = one.number - 1 if one.parent is None else one.parent
        generations.append(
            {
                "number": one.number,
                "checkpoint": one.location,
                "query_id": one.query_id,
                "parent": None if one.based_at is None else parent,
                "based_at": one.based_at,
                "layout": None if one.layout is None else dict(one.layout),
            }
        )
    return {
        "stream": name,
        **copied(stream, "pipeline", "name"),
        "pipeline_file": stream.pipeline_file or None,
        "sink": dict(stream.sink),
        "output_mode": stream.output_mode,
        "generation": stream.current_generation,
        "generations": generations,
        "runs": [
            run_document(run, end_of(run, lease))
            | {"program": run.program, "accepted": None if run.accepted is None else dict(run.accepted)}
            for run in ledger.runs(name)
        ],
        "operations": [_operation_fields(record) for record in ledger.operations(name)],
        "batches_recorded": len(ledger.entries(name, "offsets")),
    }


def _operation_fields(record: OperationRecord) -> Document:
    fields = copied(record, "id", "goal", "status") | times(record, "started", "ended")
    return {**fields, "summary": record.summary}


def _batches(workspace: Workspace, stream: StreamRecord, wanted: _Range | None) -> list[Document]:
    """Batches with a recorded range or progress; ``progress`` is ``None`` without a progress event."""
    ledger, name = workspace.ledger, stream.full_name
    if wanted is None:
        newest = sorted(ledger.entries(name, "offsets"))[-NEWEST_BATCHES:]
        wanted = (newest[0] if newest else None, None)
    reported = {batch.batch_id: batch for batch in ledger.batches(name, *wanted)}
    ranges, batches = _ranges(workspace, stream, wanted), []
    for batch in sorted({*ranges, *reported}):
        progress, (before, entry) = reported.get(batch), ranges.get(batch, (None, None))
        if entry is not None:
            starts = {offset.source: offset.text for offset in before.offsets} if before else {}
            sources = [(end.source, starts.get(end.source), end.text) for end in entry.offsets]
        else:
            known = progress.sources if progress else ()
            sources = [(str(index), source.start, source.end) for index, source in enumerate(known)]
        marked = entry or progress
        batches.append(
            {
                "batch": batch,
                "watermark": iso(marked.watermark_ms) if marked else None,
                "sources": [{"source": source, "start": start, "end": end} for source, start, end in sources],
                "progress": progress
                and copied(progress, "generation")
                | times(progress, "timestamp")
                | copied(progress, "input_rows")
                | times(progress, "event_time_min", "event_time_max")
                | copied(progress, "late_rows", "state_rows", "output_rows")
                | {"durations_ms": dict(progress.durations_ms)},
            }
        )
    return batches


def _ranges(workspace: Workspace, stream: StreamRecord, wanted: _Range) -> dict[int, _Ends]:
    """The entry before each batch and its own, in the generation that ran it, because starts differ between
    generations.
    """
    first, found = wanted[0] or 0, dict[int, _Ends]()
    for share in shares(workspace.ledger, stream):
        base = max(share.base, first - 1)
        last = min((one for one in (share.last_batch, wanted[1]) if one is not None), default=None)
        lines = workspace.ledger.lines(stream.full_name, "offsets", max(base, 0), last, generation=share.generation)
        entries: dict[int, OffsetEntry | None] = {}
        for batch, line in lines.items():
            try:
                entries[batch] = parse_offset_entry(line.encode("utf-8", "surrogateescape"))
            except FormatError:
                # The ledger keeps lines as Spark wrote them, damaged ones too.
                entries[batch] = None
        found |= {batch: (entries.get(batch - 1), entry) for batch, entry in entries.items() if batch > base}
    return found


def ledger_page(document: Mapping[str, Any]) -> Group:
    if not document["streams"]:
        return Group(Text(f"the ledger has no stream yet: {document['ledger']}"))
    return blocks(document["streams"], _block)


def _block(stream: Document) -> Iterator[RenderableType]:
    runs = stream["runs"]
    output = open_output(stream["sink"]).location or stream["sink"].get("kind", "")
    yield heading(stream["stream"], f"{stream['output_mode']} to {output}")
    yield Text("generations", style="dim")
    for one in stream["generations"]:
        use = ", in use" if one["number"] == stream["generation"] else ""
        parent = "" if one["based_at"] is None else f", built from {one['parent']} at {newest_batch(one['based_at'])}"
        yield Text(f"  {one['number']}{use}{parent}")
        yield from _details(("query", one["query_id"]), ("checkpoint", one["checkpoint"]))
    more = f", the newest {RUNS_SHOWN} of {len(runs)}" if len(runs) > RUNS_SHOWN else ""
    yield Text("runs" + more, style="dim")
    for run in runs[-RUNS_SHOWN:]:
        yield Text(f"  {run['id']}  {run['end']}, generation {run['generation']}, Spark {run['spark_version']}")
        time = _span(run["started"], run["ended"])
        if run["end"] == KILLED:
            # The next run has recorded the end.
            noticed = run["ended"] and f", noticed {shown_time(run['ended'])}"
            time = f"{shown_time(run['started'])}{noticed or ''}"
        yield from _details(("time", time), ("reason", run["reason"]))
    if stream["operations"]:
        yield Text("operations", style="dim")
    for one in stream["operations"]:
        yield from _operation_lines(one)
    recorded = number(stream["batches_recorded"])
    if "batches" not in stream:
        yield Text(f"{recorded} batches are recorded", style="dim")
        return
    yield Text(f"batches, {len(stream['batches'])} of {recorded} recorded", style="dim")
    for batch in stream["batches"]:
        yield from _batch_lines(batch)


def _operation_lines(operation: Document) -> Iterator[Text]:
    of_stream = f" of {operation['stream']}" if "stream" in operation else ""
    yield Text(f"  {operation['id']}  {operation['goal']}{of_stream}, {operation['status']}")
    yield from _details(
        ("time", _span(operation["started"], operation["ended"])),
        ("summary", operation["summary"]),
        ("continue", operation.get("continue")),
        ("undo", operation.get("undo")),
        ("no undo", operation.get("obstacle")),
    )


def _details(*rows: tuple[str, str | None]) -> list[Text]:
    """Lines below a generation, a run, an operation or a batch: their values are too long for columns."""
    return [labelled("   " + label, text, width=15) for label, text in rows if text]


def _span(start: str | None, end: str | None) -> str | None:
    return None if start is None and end is None else f"{shown_time(start)} to {shown_time(end)}"


def _batch_lines(batch: Document) -> Iterator[Text]:
    progress = batch["progress"] or {}
    took = progress.get("durations_ms", {}).get("triggerExecution")
    counts = (
        f"{number(progress.get('input_rows'))} rows",
        f"{number(progress.get('late_rows'))} late",
        f"{number(progress.get('state_rows'))} in state",
        "-" if took is None else duration_text(took),
        f"generation {progress.get('generation', '-')}",
    )
    yield Text(f"  {batch['batch']}  {', '.join(counts) if progress else 'no progress recorded'}")
    yield from _details(
        ("event time", _span(progress.get("event_time_min"), progress.get("event_time_max"))),
        ("watermark", batch["watermark"] and shown_time(batch["watermark"])),
        *((f"source {one['source']}", f"{one['start'] or '-'} to {one['end'] or '-'}") for one in batch["sources"]),
    )


def operations_document(workspace: Workspace, name: str | None = None) -> Document:
    """Operations of a stream, or of all, oldest first, with commands to continue and undo them. Raises NotFound."""
    ledger = workspace.ledger
    streams = ledger.streams() if name is None else [find_stream(ledger, name)]
    records = [record for stream in streams for record in ledger.operations(stream.full_name)]
    listed = [
        _operation_fields(record)
        | {"stream": record.stream, "continue": None, "undo": None, "obstacle": None}
        | _ways(workspace, record)
        for record in sorted(records, key=lambda one: (one.started_ms, one.id))
    ]
    return {"schema": OPERATIONS_SCHEMA, "ledger": ledger.place, "operations": listed}


def _ways(workspace: Workspace, record: OperationRecord) -> dict[str, str | None]:
    """``obstacle``: why it cannot be undone now."""
    from slackwater.operations.apply.undo_operation import (  # noqa: PLC0415 - light start
        ENDED_WITHOUT_EFFECT,
        check_undoable,
    )

    if record.status in ENDED_WITHOUT_EFFECT:
        return {}
    lease = view_of(workspace.ledger, record.stream)
    if lease.state == "held" and lease.record is not None:
        return {"obstacle": f"{lease.record.purpose} is in progress"}
    undo = undo_command(record.id)
    if record.ended_ms is None:
        session = workspace.ledger.find_stream(record.stream).session
        following = next((finding.next for finding in unfinished(record, None, session)), None)
        return {"continue": following, "undo": None if record.status == UNDOING else undo}
    try:
        check_undoable(workspace, record)
    except SlackwaterError as error:
        return {"obstacle": error.message}
    return {"undo": undo}


def operations_page(document: Mapping[str, Any]) -> Group:
    listed = document["operations"]
    if not listed:
        return Group(Text(f"no operation is recorded: {document['ledger']}"))
    return Group(Text("operations", style="dim"), *(line for one in listed for line in _operation_lines(one)))
