"""A backfill: an older range as a single batch with the next id; the stream keeps its position.

It may read Kafka offsets before the stream's position, and files that count as read, if no batch has read them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slackwater.core.commands import APPLICATION, command, run_command
from slackwater.core.errors import Refused, UsageError
from slackwater.core.records import StreamRecord
from slackwater.core.sink import sink_text
from slackwater.core.snapshot import Snapshot
from slackwater.core.targets import Target
from slackwater.diagnose.number_line import stops
from slackwater.formats.compactible import parse_entry_name
from slackwater.ledger.recording.batch_history import BatchHistory, offsets_by_source
from slackwater.operations.goals.goal import Flag, Goal
from slackwater.operations.goals.rebuild import OF_OPERATIONS
from slackwater.operations.plan.context import PlanContext, Scope, StreamFacts, require_code
from slackwater.operations.plan.contributing import StateBounds
from slackwater.operations.plan.document import HOW_TO_PLAN
from slackwater.operations.plan.notes import summaries_of
from slackwater.operations.plan.plan import EARLIEST, Request, SourceStart
from slackwater.operations.plan.targets import WantedPosition, log_text, parse_target, position_target, target_text
from slackwater.sources import kind_of, kinds
from slackwater.sources.common.contract import Claims, SourceRange
from slackwater.sources.common.source import Source

if TYPE_CHECKING:
    from slackwater.operations.apply.operation import Replayer
    from slackwater.operations.planner import Planner

_SHOWN = 3


def check_ready(snapshot: Snapshot) -> None:
    """Raises Refused unless the next batch is new, and row order changes no result."""
    stream = snapshot.stream
    if snapshot.stateful:
        raise stateful(stream.full_name)
    _check_mode(stream.full_name, stream.output_mode)
    finding = next((one for one in stops(snapshot) if one.code not in OF_OPERATIONS), None)
    if finding is not None:
        then = command("plan", "resume", stream.full_name)
        raise _unready(snapshot, finding.text, "a stream that can be started", then)
    marks = snapshot.marks
    if marks.next_is_planned or marks.committed < 0:
        found = "no batch was run yet" if marks.planned < 0 else f"batch {marks.next_batch} is unfinished"
        then = f"{run_command(snapshot.stream)} --until-caught-up"
        raise _unready(snapshot, found, "a stream whose newest batch is finished", then)


def _check_mode(stream: str, output_mode: str) -> None:
    if output_mode != "append":
        raise Refused(
            "backfill-replaces",
            f"In {output_mode} mode rows replace those with the same keys: older rows would replace newer ones",
            where=f"stream {stream}",
            expected="append mode",
            found=f"{output_mode} mode",
            hint=_in_order(stream),
        )


def check_writer(stream: StreamRecord, replayer: Replayer, *, into_directory: bool) -> None:
    """Raises Refused unless the stream's own writer writes the batch."""
    if not stream.is_watched:
        return
    # What its checkpoint and sink have recorded does not show the mode.
    _check_mode(stream.full_name, replayer.output_mode)
    if into_directory or replayer.writes_to(stream.sink):
        return
    written = replayer.sink_written
    raise Refused(
        "backfill-watched",
        f"A backfill of stream {stream.full_name} uses the writer of its own program: "
        + ("the pipeline file is not that program" if written is None else "it would write to a different output"),
        where=f"stream {stream.full_name}",
        expected=sink_text(stream.sink),
        found=stream.pipeline_file if written is None else sink_text(written),
        hint=f"{command('plan', 'backfill', stream.full_name, '--pipeline', APPLICATION)}\n"
        "or write the rows to files, which any file with the query can: --output aside --into PATH",
    )


def _unready(snapshot: Snapshot, found: str, expected: str, then: str) -> Refused:
    return Refused(
        "backfill-unready",
        f"Stream {snapshot.stream.name} has no position to keep",
        where=snapshot.generation.location,
        expected=expected,
        found=found,
        hint=f"first: {then}",
    )


def stateful(stream: str) -> Refused:
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
        f"{command('plan', 'reset', stream, '--from', 'earliest')}"
    )


def live_ranges(snapshot: Snapshot, batches: BatchHistory) -> dict[str, SourceRange]:
    """The read ranges, by source. Raises Refused if a part is not recorded."""
    newest = snapshot.marks.committed
    if not batches.is_whole(newest):
        raise Refused(
            "backfill-unknown",
            f"Not all reads of stream {snapshot.stream.name} up to batch {newest} are recorded",
            where=snapshot.generation.location,
            expected=f"offsets of batch {newest}, with the source logs that it needs",
            hint="restore the ledger or the checkpoint from a backup",
        )
    logs = batches.history.sources
    ends = offsets_by_source(batches.offset(newest))
    return {source: SourceRange(source, None, end, logs.get(source, {})) for source, end in ends.items()}


def of_source(executed: Sequence[SourceRange], source: str) -> list[SourceRange]:
    return [one for one in executed if one.source == source]


def ranges_of(request: Request) -> list[tuple[Source, SourceRange]]:
    found = []
    for start in request.starts:
        if start.source in request.ends:
            end = request.ends[start.source]
            numbered = ((parse_entry_name(name), text) for name, text in start.log.items())
            log = {name[0]: text for name, text in numbered if name is not None}
            found.append((kind_of(end, {}), SourceRange(start.source, start.offset, end, log)))
    return found


def check_free(
    snapshot: Snapshot, wanted: tuple[Source, SourceRange], live: SourceRange, read: Sequence[SourceRange]
) -> None:
    """Raises Refused if batches have read, or will read, part of a range."""
    kind, span = wanted
    claimed = kind.claimed(span, live, read)
    if claimed is None:
        raise Refused(
            "backfill-unknown",
            f"The rows of source {span.source} that batches have read are unknown, so rows could be written twice",
            where=f"stream {snapshot.stream.full_name}",
            expected="a source of kind "
            + " or ".join(one.kind for one in kinds() if one.shows_what_is_free)
            + ", with all that was read recorded",
            found=f"a source of kind {kind.kind}",
            hint="process everything again instead: "
            f"{command('plan', 'reset', snapshot.stream.full_name, '--from', 'earliest')}",
        )
    if claimed:
        raise Refused(
            "backfill-overlaps",
            "The range contains rows that batches have already read, or that the stream will read by itself",
            where=f"source {span.source} of stream {snapshot.stream.full_name}",
            expected=listed(kind.free(live, read)) or "nothing: all of it has been read",
            found=listed(claimed),
            hint="all unread rows from the start of the range: "
            f"{command('plan', 'backfill', snapshot.stream.full_name, '--from', 'earliest')}",
        )


def listed(items: Sequence[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more


class Backfill(Goal):
    name = "backfill"
    summary = "Process an older range that was never read, without changing the stream's position."
    outputs = ("keep", "aside")
    unnamed_output = "keep"
    flags = (
        Flag(
            "--from",
            "at",
            f"where the range starts: {EARLIEST} (default), time:2026-01-31T00:00Z, by:PT6H, shift:-1000, batch:N or "
            "offsets:FILE",
            kind="target",
            metavar="TARGET",
            default=EARLIEST,
        ),
        Flag(
            "--to",
            "to",
            "where it ends, as --from; default: the next position that was read, or the stream's",
            kind="target",
            metavar="TARGET",
        ),
        Flag(
            "--output",
            "output",
            "keep (default): the rows are added to what the sink has; aside: they are written to files in the "
            "directory of --into, and the stream is not changed",
            kind="choice",
            default=outputs[0],
            choices=outputs,
        ),
        Flag(
            "--into",
            "into",
            "the directory of --output aside; it must be new or empty",
            kind="directory",
            metavar="PATH",
        ),
        Flag(
            "--only-source",
            "only_source",
            "index of the only source to read, for example 0; default: all",
            metavar="NAME",
        ),
    )
    runs_spark = True
    needs_executed = True

    def request(self, values: Mapping[str, Any], *, downstream: bool) -> Request:
        request = super().request(values, downstream=downstream)
        to, into = values.get("to"), values.get("into")
        if to is not None:
            self.check_target(to)
        if (request.output == "aside") != (into is not None):
            raise UsageError(
                "backfill-directory",
                "--output aside and --into PATH are given together: the rows are written to this directory",
                expected="--output aside --into PATH, or neither",
                found=f"--output {request.output}" + (f" --into {into}" if into is not None else " without --into"),
                hint=command("plan", "backfill", "--help"),
            )
        return replace(request, to=to, into=into)

    def check_target(self, text: str) -> None:
        parse_target(text)

    def complete(self, request: Request, planner: Planner, facts: StreamFacts, /) -> Request:
        require_code(facts.stream, request.goal, facts.stream.pipeline_file)
        check_ready(facts.snapshot)
        planner.backfill_directory(facts.stream, request)
        batches, written = BatchHistory(facts.history), facts.snapshot.written_or_committed
        targets = (request.target, request.to or target_text(Target("latest")))
        named = [position_target(one, batches, written, planner.read_file) for one in targets]
        with planner.present_query(facts.stream) as replayer:
            if replayer.profile().stateful:
                raise stateful(facts.stream.full_name)
            check_writer(facts.stream, replayer, into_directory=request.into is not None)
            live = live_ranges(facts.snapshot, batches)
            current, now_ms = {source: span.end for source, span in live.items()}, round(time.time() * 1000)

            starts, stops_at = (
                replayer.positions(WantedPosition(one, current, batches.history.sources, now_ms, request.only_source))
                for one in named
            )
            found = {
                source: kind_of(start.base.end, {}).range_between(
                    start.base,
                    stops_at[source].base,
                    Claims(live[source], of_source(facts.executed, source), replayer.compact_interval()),
                    to_next=request.to is None,
                )
                for source, start in starts.items()
            }
            return replace(
                request,
                starts=tuple(
                    SourceStart(source, one.start, log_text(one.log), None, f"source {source}: {one.summary}")
                    for source, one in found.items()
                ),
                ends={source: one.end for source, one in found.items()},
            )

    def accepts_positions(self, request: Request) -> bool:
        return sorted(one.source for one in request.starts) == sorted(request.ends)

    def continued_after(self, _request: Request, /) -> int | None:
        return None

    def scope(self, context: PlanContext, /) -> Scope | None:
        """``None`` for an empty range. Raises Refused if the stream cannot keep its position, its result would differ,
        or the range is not free.
        """
        snapshot, request = context.snapshot, context.request
        check_ready(snapshot)
        live = live_ranges(snapshot, context.batches)
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
            check_free(snapshot, (kind, span), live[span.source], of_source(context.facts.executed, span.source))
        if not wanted:
            return None
        # Into a directory the batch uses no id of the stream.
        last = snapshot.marks.committed if context.side is not None else snapshot.marks.committed + 1
        return Scope(
            last,
            last + 1,
            None,
            StateBounds(stateful=False, retention_ms=0, delay_ms=None),
            starts=request.starts,
            added=True,
        )

    def nothing_to_do(self, context: PlanContext) -> tuple[str, ...]:
        return ("nothing to do: the range has nothing that no batch has read", *summaries_of(context.request.starts))


BACKFILL = Backfill()
