"""Use case: what the ledger records of a home or of one stream. Only the ledger is read; nothing is written."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from slackwater.app.workspace import Workspace
from slackwater.errors import FormatError, UsageError
from slackwater.formats.offset_log import parse_offset_entry
from slackwater.lease.view import end_of, view_of
from slackwater.model.checkpoint_logs import OffsetEntry
from slackwater.model.records import BatchRecord, GenerationRecord, OperationRecord, RunRecord, StreamRecord
from slackwater.recording.executed import shares
from slackwater.sinks.registry import open_output

NEWEST_BATCHES = 20
"""How many batches are shown without a range."""

NEWEST_POSSIBLE = 2**63 - 1
_SHOWN = 80
_Ends = tuple[OffsetEntry | None, OffsetEntry | None]
_RANGE = re.compile(r"(?P<first>\d*)(?P<dots>\.\.)?(?P<last>\d*)")


@dataclass(frozen=True, slots=True)
class RunView:
    """A run, and how it ended as far as can be seen now."""

    record: RunRecord
    end: str


@dataclass(frozen=True, slots=True)
class SourceRange:
    """One source's part in a batch. ``start`` and ``end`` are Spark's own strings, ``None`` where there is none."""

    source: str
    start: str | None
    end: str | None


@dataclass(frozen=True, slots=True)
class BatchView:
    """A batch whose range is recorded. ``progress`` is ``None`` where no progress event of it arrived."""

    batch_id: int
    progress: BatchRecord | None
    watermark_ms: int
    sources: tuple[SourceRange, ...]


@dataclass(frozen=True, slots=True)
class StreamView:
    """One stream. ``output`` is the location of its output, or the kind of its sink where it has none.

    ``batches`` is ``None`` if they were not asked for; ``batches_recorded`` counts all of them.
    """

    stream: StreamRecord
    output: str
    generations: tuple[GenerationRecord, ...]
    runs: tuple[RunView, ...]
    operations: tuple[OperationRecord, ...]
    batches_recorded: int
    batches: tuple[BatchView, ...] | None = None


def parent_of(generation: GenerationRecord) -> int:
    """The generation from which a rebuilt one was built; records of older versions do not have it."""
    return generation.number - 1 if generation.parent is None else generation.parent


@dataclass(frozen=True, slots=True)
class BatchRange:
    """Both ends included, ``None``: open."""

    first: int | None = None
    last: int | None = None


def parse_range(text: str) -> BatchRange:
    """``3..7``, ``3..``, ``..7``, ``..`` or ``5``. Raises UsageError for anything else."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or not text.strip().isascii() or not text.strip():
        raise _no_range(text)
    first, last = _batch_id(match["first"], text), _batch_id(match["last"], text)
    if not match["dots"]:
        last = first
    if first is not None and last is not None and first > last:
        raise UsageError(
            "batch-range", "A range of batches starts with the older one", found=repr(text), hint=f"{last}..{first}"
        )
    return BatchRange(first, last)


def _batch_id(digits: str, text: str) -> int | None:
    if not digits:
        return None
    number = int(digits) if len(digits) <= len(str(NEWEST_POSSIBLE)) else NEWEST_POSSIBLE + 1
    if number > NEWEST_POSSIBLE:
        raise _no_range(text)
    return number


def _no_range(text: str) -> UsageError:
    shown = repr(text)
    return UsageError(
        "batch-range",
        "A range of batches cannot be parsed",
        expected="such as 3..7, 3.., ..7 or 5",
        found=shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}...",
    )


def ledger_view(
    workspace: Workspace, name: str | None = None, wanted: BatchRange | None = None
) -> tuple[StreamView, ...]:
    """All streams without their batches, or one with those in ``wanted`` (``None``: the newest few)."""
    if name is None:
        return tuple(_stream(workspace, stream) for stream in workspace.ledger.streams())
    stream = workspace.ledger.find_stream(name)
    return (replace(_stream(workspace, stream), batches=_batches(workspace, stream, wanted)),)


def _stream(workspace: Workspace, stream: StreamRecord) -> StreamView:
    ledger, name = workspace.ledger, stream.full_name
    lease = view_of(ledger.lease(name), ledger.now_ms())
    return StreamView(
        stream=stream,
        output=open_output(stream.sink).location or stream.sink.get("kind", ""),
        generations=tuple(ledger.generations(name)),
        runs=tuple(RunView(run, end_of(run, lease)) for run in ledger.runs(name)),
        operations=tuple(ledger.operations(name)),
        batches_recorded=len(ledger.entries(name, "offsets")),
    )


def _batches(workspace: Workspace, stream: StreamRecord, wanted: BatchRange | None) -> tuple[BatchView, ...]:
    ledger, name = workspace.ledger, stream.full_name
    known = sorted(ledger.entries(name, "offsets"))
    if wanted is None:
        newest = known[-NEWEST_BATCHES:]
        wanted = BatchRange(newest[0] if newest else None)
    reported = {batch.batch_id: batch for batch in ledger.batches(name, wanted.first, wanted.last)}
    ranges = _ranges(workspace, stream, wanted)
    return tuple(
        _batch(batch, reported.get(batch), ranges.get(batch, (None, None))) for batch in sorted({*ranges, *reported})
    )


def _ranges(workspace: Workspace, stream: StreamRecord, wanted: BatchRange) -> dict[int, _Ends]:
    """The entry before each batch and its own, in the generation that ran it: another one may start elsewhere."""
    first, found = 0 if wanted.first is None else wanted.first, dict[int, _Ends]()
    for share in shares(workspace.ledger, stream):
        base = max(share.base, first - 1)
        last = min((one for one in (share.last, wanted.last) if one is not None), default=None)
        lines = workspace.ledger.lines(stream.full_name, "offsets", max(base, 0), last, generation=share.generation)
        entries = {batch: _entry(line.text) for batch, line in lines.items()}
        found |= {batch: (entries.get(batch - 1), entry) for batch, entry in entries.items() if batch > base}
    return found


def _entry(text: str) -> OffsetEntry | None:
    try:
        return parse_offset_entry(text.encode("utf-8", "surrogateescape"))
    except FormatError:
        # The ledger keeps lines as Spark wrote them, damaged ones too.
        return None


def _batch(batch: int, progress: BatchRecord | None, ends: _Ends) -> BatchView:
    before, entry = ends
    starts = {offset.source: offset.text for offset in before.offsets} if before else {}
    if entry is not None:
        sources = tuple(SourceRange(end.source, starts.get(end.source), end.text) for end in entry.offsets)
    else:
        known = progress.sources if progress else ()
        sources = tuple(SourceRange(str(index), source.start, source.end) for index, source in enumerate(known))
    watermark = entry.watermark_ms if entry else (progress.watermark_ms if progress else None)
    return BatchView(batch, progress, watermark or 0, sources)
