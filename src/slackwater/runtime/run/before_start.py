"""Registers a stream before its query starts, and refuses starts that would lose, duplicate or skip rows.

State has the meaning that its code gave it. A change of the program that alters the meaning is refused; the user can
accept some changes, which join the state with the next committed batch.
"""

import getpass
import json
import os
import platform
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.opened import open_checkpoint
from slackwater.checkpoint.reader import shape_of
from slackwater.core.checkpoint import Depth, Marks
from slackwater.core.commands import command, with_pipeline
from slackwater.core.errors import LeaseHeld, NotFound, Refused, SlackwaterError, StreamFailed, UsageError
from slackwater.core.escaping import one_line
from slackwater.core.facts import Finding, Severity
from slackwater.core.program import Program, digest_of, parsed_program, with_started
from slackwater.core.records import WATCHED, GenerationRecord, StreamRecord
from slackwater.core.sink import Owner, sink_text
from slackwater.core.snapshot import Snapshot
from slackwater.core.verdict import StreamVerdict, Verdict
from slackwater.diagnose.checkpoint_changes import checkpoint_changes
from slackwater.diagnose.doctor import start_findings
from slackwater.diagnose.number_line import RULES, findings_about, stops, warnings
from slackwater.diagnose.program_changes import not_repeatable, verdict
from slackwater.diagnose.refusal import Ways, program_refusal, refusal, ways_with
from slackwater.facts.collect import facts_of_start
from slackwater.facts.sources import asked_sources, not_compared, record_ids
from slackwater.ledger.home import Home, read_stream_file
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.history import settings_of_state
from slackwater.ledger.recording.log_copier import LogCopier
from slackwater.ledger.recording.places import (
    TakenPlace,
    checkpoints,
    home_place,
    inputs,
    outputs,
    overlap,
    reads_within,
)
from slackwater.ledger.recording.snapshot import look_at_stream, profile_of
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.run.query import BuiltStream
from slackwater.runtime.session.settings import BuildAgain, only_settings
from slackwater.sinks.common.registry import is_same_sink, open_each, open_output
from slackwater.sources.common.contract import SparkSource
from slackwater.storage.open import is_uri, open_read_store


class ReadyToStart(NamedTuple):
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
        ledger.register_stream(
            record,
            GenerationRecord(record.full_name, 1, location if is_uri(location) else str(Path(location).absolute())),
        )
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
    home: Home, ledger: Ledger, stream: StreamRecord, depth: Depth = "quick", *, query: Sequence[SparkSource] = ()
) -> ReadyToStart:
    """Refuse a start that would lose or duplicate rows; then copy missing logs.

    Needs Spark only for ``query``, the query's sources. Raises Refused, DataError, or StreamFailed.
    """
    generation = ledger.generation(stream.full_name, stream.current_generation)
    try:
        check_output_apart(home, ledger, stream)
        snapshot, opened = look_at_stream(ledger, home, stream, depth, own_lease=True)
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
        members = [TakenPlace("another output of the stream", one) for one in places[:number]]
        taken = [one for one in (*used, *members) if overlap(place, one.place)]
        taken += [one for one in others if place != one.place and overlap(place, one.place)]
        taken += [TakenPlace("files that the stream reads", path) for path in read if reads_within(path, place)]
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
        f"Stream {now.full_name} has written to a different sink so far",
        expected=sink_text(known.sink),
        found=sink_text(now.sink),
        hint="start the program from its usual directory; if this is its output, "
        f"{command('release', now.full_name)} forgets the recorded one, and the next start records it"
        if now.is_watched
        else "start the stream from its usual directory, or give the changed stream a new name",
    )


Accepted = dict[str, dict[str, object]]
"""The changes that the user accepted and the run records, by stream."""


@dataclass(slots=True)
class StartGate:
    """Starts only streams that fit their state, or whose changes are ``accepted``.

    ``found`` are all changes' codes; ``words`` are Spark's start options (``session_words``).
    """

    ledger: Ledger
    reference: str
    say: Callable[[str], None]
    accepted: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    found: set[str] = field(default_factory=set)
    recorded: Accepted = field(default_factory=dict)

    def check(self, built: BuiltStream, build_again: BuildAgain | None = None) -> None:
        """Raises Refused if the query changes the state's meaning. ``build_again`` as in ``judge``."""
        stream = self.ledger.find_stream(built.definition.full_name)
        generation = self.ledger.generation(stream.full_name, stream.current_generation)
        judged = judge(built, generation, settings_of_state(self.ledger, stream.full_name), build_again)
        codes = {change.code for change in judged.verdict.changes}
        self.found |= codes
        refused = judged.verdict.unaccepted(self.accepted)
        if refused:
            raise program_refusal(ways_of(built.definition, self.reference, self.words), judged, refused)
        for change in judged.verdict.changes:
            if change.said:
                self.say(f"{judged.stream}: {change.code}: {change.text}")
        if codes & self.accepted:
            try:
                user = getpass.getuser()
            except (KeyError, OSError, ImportError):
                # A container may run as a user id that has no name.
                user = str(os.geteuid())
            by = f"{user}@{platform.node()}"
            self.recorded[judged.stream] = {"codes": sorted(codes & self.accepted), "by": by}

    def require_found(self) -> None:
        unknown = sorted(self.accepted - self.found)
        if unknown:
            raise UsageError(
                "accept-unknown",
                "--accept names a change that does not exist",
                expected=", ".join(sorted(self.found)) or "no --accept: there is no change",
                found=", ".join(unknown),
                hint=f"the changes and their codes: {command('check', 'FILE')}",
            )


def ways_of(definition: StreamDefinition, reference: str, words: tuple[str, ...] = ()) -> Ways:
    watched = definition.pipeline == WATCHED
    return ways_with(definition.full_name, reference, definition.sink.traits, is_watched=watched, session=words)


def judge(
    built: BuiltStream,
    generation: GenerationRecord | None,
    recorded: Mapping[str, str] | None = None,
    build_again: BuildAgain | None = None,
) -> StreamVerdict:
    """Compare the query with its state. A stream without ``generation`` has no checkpoint yet.

    ``recorded`` are the settings of the state's run; ``build_again`` rebuilds the query. Raises StreamFailed for an
    unreadable checkpoint.
    """
    name, now = built.definition.full_name, built.program
    notes = Verdict(not_repeatable(None, now)) if now is not None else Verdict()
    if generation is None:
        return StreamVerdict(name, -1, "nothing", notes)
    store = open_read_store(generation.location)
    try:
        logs = read_logs(store)
        if logs.planned < 0:
            return StreamVerdict(name, logs.committed, "nothing", notes)
        if now is None:
            return StreamVerdict(name, logs.committed, "unreadable")
        kept = parsed_program(generation.programs, logs.committed)
        if kept is not None:
            found = verdict(kept, now)
            settings = () if found.starts else only_settings(built, kept, recorded, build_again)
            return StreamVerdict(name, logs.committed, "recorded", found, settings)
        shape = shape_of(open_checkpoint(store), profile_of(generation))
    except OSError as error:
        raise StreamFailed(
            "store-unreadable",
            f"The checkpoint of stream {name} cannot be read: {error}",
            where=generation.location,
            hint="make the store reachable with the permissions of this user, then repeat the command",
        ) from error
    found = checkpoint_changes(shape, now, ran=logs.committed >= 0)
    return StreamVerdict(name, logs.committed, "checkpoint", Verdict((*found.changes, *notes.changes)))


def record_program(home: Home, ledger: Ledger, generation: GenerationRecord, built: BuiltStream) -> None:
    """The program continues after the newest committed batch; recorded before state can change.

    An unreadable program is recorded as unknown: its commits are not the previous program's.
    """
    logs = read_logs(open_read_store(generation.location))
    known = ledger.generation(generation.stream, generation.number).programs
    started = with_started(known, program_json(built.program), logs.committed)
    if started != list(known or ()):
        ledger.update_generation(generation.stream, generation.number, programs=started)
        write_stream_file_of(home, ledger, generation.stream)
    if built.program is not None:
        record_ids(ledger, generation, built.program.sources, logs, built.sources)


def program_json(program: Program | None) -> dict[str, Any] | None:
    if program is None:
        return None
    plain: dict[str, Any] = json.loads(json.dumps(program.as_json()))
    return plain


def program_digest(program: Program | None) -> str | None:
    return None if program is None else digest_of(program.as_json())
