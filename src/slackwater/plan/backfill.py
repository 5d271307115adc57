"""The scope of a backfill: one batch of an older range, under the next id of a stream that keeps its position.

What is free for it: of Kafka, offsets before the position of the stream that no batch has read; of a file source, files
that count as read and that no batch has read. Anything else was read already, or the stream reads it by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.diagnose.number_line import stops
from slackwater.diagnose.words import run_command
from slackwater.errors import Refused, UsageError
from slackwater.formats.compactible import parse_entry_name
from slackwater.model.actions import SourceStart
from slackwater.model.plan import Request
from slackwater.model.snapshot import Snapshot
from slackwater.plan.basis import Basis, Scope
from slackwater.plan.batch_history import BatchHistory, offsets_by_source
from slackwater.plan.contributing import StateBounds
from slackwater.plan.document import HOW_TO_PLAN
from slackwater.sources.contract import Source, SourceRange
from slackwater.sources.registry import kind_of

SHOWN = 3
_OF_OPERATIONS = frozenset({"operation-unfinished", "operation-running"})


def scope_of_backfill(basis: Basis) -> Scope | None:
    """What the backfill takes, ``None`` where its range is empty.

    Raises Refused where the stream cannot keep its position, its result would differ, or the range is not free.
    """
    snapshot, request = basis.snapshot, basis.request
    check_ready(snapshot)
    live = live_ranges(snapshot, basis.batches)
    if {start.source for start in request.starts} != set(live):
        raise UsageError(
            "plan-damaged",
            "The plan was changed or damaged: its range is not one of this query",
            where=f"stream {snapshot.stream.full_name}",
            expected=f"sources {', '.join(live)}",
            found=", ".join(start.source for start in request.starts),
            hint=f"nothing was changed; plan again: {HOW_TO_PLAN}",
        )
    wanted = [(kind, span) for kind, span in ranges_of(request) if span.start != span.end]
    for kind, span in wanted:
        check_free(snapshot, (kind, span), live[span.source], of_source(basis.executed, span.source))
    if not wanted:
        return None
    last = snapshot.marks.committed if basis.side is not None else snapshot.marks.committed + 1
    return Scope(
        last, last + 1, None, StateBounds(stateful=False, retention_ms=0, delay_ms=None), starts=request.starts
    )


def check_ready(snapshot: Snapshot) -> None:
    """Raises Refused unless the next batch is a new one, and the order in which rows are read changes no result."""
    stream = snapshot.stream
    if stream.is_watched:
        raise Refused(
            "backfill-watched",
            f"The batch of a backfill is run by Slackwater, which does not run the query of stream {stream.full_name}",
            where=f"stream {stream.full_name}",
            expected="a stream of a pipeline file",
            found="a query that was only watched",
            hint="put the query into a pipeline file as a stream of its own, with an output of its own",
        )
    if snapshot.stateful:
        raise stateful(stream.full_name)
    if stream.output_mode != "append":
        raise Refused(
            "backfill-replaces",
            f"In {stream.output_mode} mode rows replace those with the same keys: older rows would replace newer ones",
            where=f"stream {stream.full_name}",
            expected="append mode",
            found=f"{stream.output_mode} mode",
            hint=_in_order(stream.full_name),
        )
    finding = next((one for one in stops(snapshot) if one.code not in _OF_OPERATIONS), None)
    if finding is not None:
        then = f"slackwater plan resume {stream.full_name}"
        raise _unready(snapshot, finding.text, "a stream that can be started", then)
    marks = snapshot.marks
    if marks.next_is_planned or marks.committed < 0:
        found = "no batch was run yet" if marks.planned < 0 else f"batch {marks.next_batch} is unfinished"
        then = f"{run_command(snapshot)} --until-caught-up"
        raise _unready(snapshot, found, "a stream whose newest batch is finished", then)


def _unready(snapshot: Snapshot, found: str, expected: str, then: str) -> Refused:
    return Refused(
        "backfill-unready",
        f"Stream {snapshot.stream.name} has no position that it could keep",
        where=snapshot.generation.location,
        expected=expected,
        found=found,
        hint=f"first: {then}",
    )


def stateful(stream: str) -> Refused:
    """The refusal of a query with state, with what is possible instead."""
    return Refused(
        "backfill-stateful",
        f"The query of stream {stream} keeps state: older rows would meet the state and watermark of newer ones, and "
        "the result would differ from that of reading them in order",
        where=f"stream {stream}",
        expected="a query without aggregation, join of streams, deduplication or other state",
        hint=_in_order(stream),
    )


def _in_order(stream: str) -> str:
    return (
        "process everything in order into a new output, which then replaces the old one: "
        f"slackwater plan reset {stream} --from earliest"
    )


def live_ranges(snapshot: Snapshot, batches: BatchHistory) -> dict[str, SourceRange]:
    """From the beginning to where the stream is, by source. Raises Refused where that is not wholly recorded."""
    newest = snapshot.marks.committed
    if not batches.is_whole(newest):
        raise Refused(
            "backfill-unknown",
            f"What stream {snapshot.stream.name} has read up to batch {newest} is not all recorded",
            where=snapshot.generation.location,
            expected=f"offsets of batch {newest}, with the source logs that it needs",
            hint="restore the ledger or the checkpoint from a backup",
        )
    logs = batches.history.sources
    ends = offsets_by_source(batches.offset(newest))
    return {source: SourceRange(source, None, end, logs.get(source, {})) for source, end in ends.items()}


def of_source(executed: Sequence[SourceRange], source: str) -> list[SourceRange]:
    """The ranges of one source."""
    return [one for one in executed if one.source == source]


def ranges_of(request: Request) -> list[tuple[Source, SourceRange]]:
    """The range of each source that a request has."""
    spans = (_range(start, request.ends[start.source]) for start in request.starts if start.source in request.ends)
    return [(kind_of(span.end, {}), span) for span in spans]


def _range(start: SourceStart, end: str) -> SourceRange:
    numbered = ((parse_entry_name(name), text) for name, text in start.log.items())
    return SourceRange(start.source, start.offset, end, {name[0]: text for name, text in numbered if name is not None})


def check_free(
    snapshot: Snapshot, wanted: tuple[Source, SourceRange], live: SourceRange, read: Sequence[SourceRange]
) -> None:
    """Raises Refused where a range has what batches have read, or what the stream will read by itself."""
    kind, span = wanted
    claimed = kind.claimed(span, live, read)
    if claimed is None:
        raise Refused(
            "backfill-unknown",
            f"What batches have read of source {span.source} is unknown, so that rows could be written twice",
            where=f"stream {snapshot.stream.full_name}",
            expected="Kafka or a file source, with all that was read recorded",
            found=f"a source of kind {kind.kind}",
            hint=f"process everything again instead: slackwater plan reset {snapshot.stream.full_name} --from earliest",
        )
    if claimed:
        raise Refused(
            "backfill-overlaps",
            "The range has rows that batches have read already, or that the stream will read by itself",
            where=f"source {span.source} of stream {snapshot.stream.full_name}",
            expected=_listed(kind.free(live, read)) or "nothing: all of it has been read",
            found=_listed(claimed),
            hint="everything that is free from the start of the range on: "
            f"slackwater plan backfill {snapshot.stream.full_name} --from earliest",
        )


def _listed(items: Sequence[str]) -> str:
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + more
