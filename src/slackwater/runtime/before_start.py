"""Registers a stream before its query starts, and refuses starts that would lose, duplicate or skip rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from slackwater.core.commands import command, with_pipeline
from slackwater.core.errors import LeaseHeld, NotFound, Refused, SlackwaterError, StreamFailed
from slackwater.core.escaping import one_line
from slackwater.core.finding import Finding, Severity
from slackwater.core.marks import Marks
from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.core.sink import Owner, sink_text
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.doctor import start_findings
from slackwater.diagnose.number_line import RULES, findings_about, stops, warnings
from slackwater.diagnose.refusal import refusal
from slackwater.facts.collect import facts_of_start
from slackwater.facts.served import asked_sources, not_compared
from slackwater.ledger.home import Home, read_stream_file
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.log_copier import LogCopier
from slackwater.ledger.recording.places import (
    Taken,
    checkpoints,
    home_place,
    inputs,
    outputs,
    overlap,
    reads_within,
)
from slackwater.ledger.recording.snapshot import SnapshotContext, look_at_stream
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.query import BuiltStream
from slackwater.sinks.common.registry import is_same_sink, open_each, open_output
from slackwater.sources.common.contract import SparkSource
from slackwater.storage.open import is_uri, open_read_store


@dataclass(frozen=True, slots=True)
class ReadyToStart:
    """``completed_batch`` is the snapshot's. ``warnings`` are for the user, before the query starts."""

    copier: LogCopier
    committed: int
    planned: int
    completed_batch: int | None = None
    warnings: tuple[str, ...] = ()


def register(
    definition: StreamDefinition, reference: str, home: Home, ledger: Ledger, session: tuple[str, ...] = ()
) -> StreamRecord:
    """Record a new stream and its first generation; the caller holds its lease.

    A known stream only changes in ``record_start``, so a refused start changes nothing. Raises Refused for a different
    sink.
    """
    record = StreamRecord(
        definition.pipeline,
        definition.name,
        definition.sink.identity(),
        definition.output_mode,
        reference,
        session=session,
    )
    file = read_stream_file(home, record.pipeline, record.name)
    try:
        known = ledger.find_stream(record.full_name)
    except NotFound:
        # ``stream.json`` outlives a lost ledger: under a new id the stream's output would count as another stream's.
        record = record._replace(id=file.id if file is not None else str(uuid.uuid4()))
        location = definition.checkpoint or str(home.checkpoint(record.pipeline, record.name, 1))
        ledger.register_stream(record, GenerationRecord(record.full_name, 1, _absolute(location)))
    else:
        # Before the first planned batch the output has no rows of this stream: its sink may still be changed.
        if ledger.entries(record.full_name, "offsets"):
            check_same_sink(known, record)
        identifier = file.id if file is not None else known.id or str(uuid.uuid4())
        record = record._replace(current_generation=known.current_generation, id=identifier)
        ledger.register_stream(known._replace(id=identifier))
    write_stream_file_of(home, ledger, record.full_name)
    return record


def record_refusal(ledger: Ledger, stream: str, error: BaseException) -> None:
    """Record a refused start for ``status``; refusals by the number line are found without a record."""
    # Of a stream that another process holds nothing is recorded.
    if (
        not isinstance(error, SlackwaterError)
        or isinstance(error, LeaseHeld)
        or error.code in {rule.code for rule in RULES}
    ):
        return
    # Where the ledger fails, too, the error itself is what the user has to read.
    with suppress(SlackwaterError):
        known, last = ledger.find_stream(stream), ledger.last_run(stream)
        if last is not None and last.end == "failed" and last.reason == f"{error.code}: {error}":
            # The query has failed while it was started, and its run shows that.
            return
        reason = "\n".join(line for line in (f"{error.code}: {one_line(str(error))}", error.hint) if line)
        ledger.record_refusal(stream, known.current_generation, error.code, reason)


def record_start(home: Home, ledger: Ledger, stream: StreamRecord) -> None:
    ledger.register_stream(stream)
    write_stream_file_of(home, ledger, stream.full_name)


def check(
    home: Home, ledger: Ledger, stream: StreamRecord, *, all_state: bool = False, query: Sequence[SparkSource] = ()
) -> ReadyToStart:
    """Refuse a start that would lose or duplicate rows; then copy missing logs.

    Needs Spark only for ``query``, the query's sources. Raises Refused, DataError, or StreamFailed.
    """
    generation = ledger.generation(stream.full_name, stream.current_generation)
    try:
        check_output_apart(home, ledger, stream)
        snapshot, opened = look_at_stream(SnapshotContext(ledger, home, own_lease=True, starting=all_state), stream)
        snapshot = snapshot._replace(by_run=True)
        for finding in stops(snapshot):
            raise refusal(_with_file(finding, stream, ledger), stream.name)
        sources = asked_sources(ledger, snapshot, opened, query)
        at_start = list(start_findings(facts_of_start(ledger, snapshot, opened, sources)))
        for one in (found for found in at_start if found.finding.severity is Severity.STOP):
            raise refusal(_with_file(one.finding, stream, ledger), stream.name, one.at_stake)
        output = open_output(stream.sink)
        copier = LogCopier(ledger, stream.full_name, generation.number, open_read_store(generation.location), output)
        copier.copy()
    except OSError as error:
        raise StreamFailed(
            "store-unreadable",
            f"The checkpoint or the output of stream {stream.name} cannot be read: {error}",
            where=generation.location,
            hint="make the store reachable with the permissions of this user, then run the pipeline again",
        ) from error
    marks = snapshot.marks
    if snapshot.shown:
        # Recorded before the query starts: the sink will skip a batch that it has and that is not committed.
        # Of several outputs the newest: what one of them has keeps its recorded range.
        ledger.record_sink_mark(stream.full_name, max(snapshot.shown), marks.committed)
    found = (*warnings(snapshot), *(one.finding for one in at_start))
    read_first = (*(finding.text for finding in found), *not_compared(sources))
    return ReadyToStart(copier, marks.committed, marks.planned, snapshot.completed_batch, read_first)


def check_output_apart(home: Home, ledger: Ledger, stream: StreamRecord, read: Iterable[str] = ()) -> None:
    """Raises Refused if an output overlaps a directory with a different use.

    ``read`` are the query's inputs. Streams may read each other's output.
    """
    others = [one for one in outputs(ledger) if one.stream != stream.full_name]
    used = [home_place(home), *checkpoints(ledger)]
    if not ledger.entries(stream.full_name, "offsets"):
        # What others have read until then is not of this stream. Later it may be, and of a pattern only the folder is
        # recorded.
        used += [one for one in inputs(ledger) if one.stream != stream.full_name]
    places = [output.location for output in open_each(stream.sink) if output.location is not None]
    for number, place in enumerate(places):
        members = [Taken("another output of the stream", one) for one in places[:number]]
        taken = [one for one in (*used, *members) if overlap(place, one.place)]
        taken += [one for one in others if place != one.place and overlap(place, one.place)]
        taken += [Taken("files that the stream reads", path) for path in read if reads_within(path, place)]
        if taken:
            raise Refused(
                "output-overlaps",
                f"The output of stream {stream.full_name} would share its directory with {taken[0].what}",
                where=place,
                expected="a directory of its own",
                found=taken[0].place,
                hint="give the sink a directory outside of every other output, checkpoint and source",
            )


def _with_file(finding: Finding, stream: StreamRecord, ledger: Ledger) -> Finding:
    if ledger.find_stream(stream.full_name).pipeline_file == stream.pipeline_file:
        return finding
    if finding.next is None or not finding.next.startswith(command("plan")) or " --pipeline " in finding.next:
        # The command for a query of an application names the program of this start already.
        return finding
    return replace(finding, next=with_pipeline(finding.next, stream.pipeline_file))


NOT_COMPARED = (
    "the query was not compared with the one that made the kept state, because its plan or code cannot be read: "
    "a change of what the state means is not noticed"
)


def warnings_about(stream: StreamRecord, built: BuiltStream, committed: int) -> tuple[str, ...]:
    generation = GenerationRecord(stream.full_name, stream.current_generation, "")
    now = Snapshot(stream, generation, Marks(), profile=built.profile)
    not_compared = (NOT_COMPARED,) if committed >= 0 and built.program is None else ()
    return (*not_compared, *(finding.text for finding in findings_about(now, "query")))


def claim_output(home: Home, stream: StreamRecord) -> None:
    open_output(stream.sink).claim(Owner(stream.id or "", stream.full_name, str(home.location)))


def check_same_sink(known: StreamRecord, now: StreamRecord) -> None:
    """Refuse a changed output: a new directory would lack earlier rows."""
    if is_same_sink(known.sink, now.sink):
        return
    raise Refused(
        "sink-changed",
        f"Stream {now.full_name} has written to another sink so far",
        expected=sink_text(known.sink),
        found=sink_text(now.sink),
        hint=_how_to_change_sink(now),
    )


def _how_to_change_sink(stream: StreamRecord) -> str:
    if not stream.is_watched:
        return "start from the directory that the stream was always started from, or give the changed stream a new name"
    return (
        "start from the directory that the program was always started from; if this is its output, "
        f"{command('release', stream.full_name)} forgets the recorded one, and the next start records it"
    )


def _absolute(location: str) -> str:
    return location if is_uri(location) else str(Path(location).absolute())
