"""``slackwater adopt``: records a checkpoint of the user's own program."""

import os
import uuid
from collections.abc import Callable
from contextlib import ExitStack

from rich.console import Group
from rich.text import Text

from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.operators import state_stores
from slackwater.checkpoint.writer import is_halted
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import Document, marks_document, parse_conf, prepare, say
from slackwater.cli.common.examine import deleted_checkpoint_hint, require_output, require_reachable
from slackwater.cli.common.pages import labelled_rows, marks_text, show
from slackwater.core.commands import command, output_command, session_words
from slackwater.core.errors import NotFound, PipelineError, Refused, UsageError, unreachable
from slackwater.core.records import STREAM_NAME, WATCHED, GenerationRecord, StreamRecord
from slackwater.core.reference import absolute_path
from slackwater.core.sink import Identity, WriterCalls, sink_text
from slackwater.core.units import counted
from slackwater.facts.collect import facts_of_stream
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.ledger.recording.history import history_of
from slackwater.ledger.recording.log_copier import copy_new
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.ledger.recording.stream_files import forget, write_stream_file_of
from slackwater.ledger.streams import OPERATORS, STATE_STORES
from slackwater.ledger.workspace import Workspace, open_workspace, record_move, stream_at, stream_moved_to
from slackwater.operations.apply.operation import QueryRuntime
from slackwater.operations.check_home import check_home
from slackwater.runtime.loader import full_reference, is_application
from slackwater.runtime.replay import SparkRuntime
from slackwater.sinks.common.registry import UNKNOWN, is_same_sink, open_output, recognised
from slackwater.storage.open import check_no_secret, local_path_of, open_read_store

SCHEMA = "slackwater.adopt/1"
_ReadProgram = Callable[[Workspace, StreamRecord], StreamRecord]


def adopt_checkpoint(
    workspace: Workspace,
    location: str,
    *,
    sink: str | None = None,
    name: str | None = None,
    program: _ReadProgram | None = None,
) -> Document:
    """Record the checkpoint, or its new entries. ``program`` reads the program that starts the query. Returns the
    document. Raises SlackwaterError; nothing is recorded then.
    """
    ledger, location = workspace.ledger, _absolute(location)
    store = open_read_store(location)
    try:
        require_reachable(store)
    except NotFound as error:
        known_as = stream_at(ledger, location)
        if known_as is not None:
            error.hint = deleted_checkpoint_hint(known_as.full_name)
        raise
    if is_halted(store):
        raise Refused(
            "adopt-replaced",
            "An operation of Slackwater is replacing the files of this checkpoint",
            where=location,
            hint="finish or undo the operation in the home that started it; the file metadata has the command",
        )
    identity = UNKNOWN
    if sink is not None:
        try:
            found = require_output(_absolute(sink), "unknown")
        except OSError as error:
            raise unreachable("The output", error, sink) from error
        # As an application's own writer names it: Spark writes tables in another way than Slackwater's own sinks.
        identity = recognised(WriterCalls(found["kind"], {"path": found["path"]}))
    check_home(workspace, workspace.say)
    stream, known = _stream(workspace, location, identity, sink, name)
    with LeaseKeeper([stream.full_name], workspace.home, ledger, "adopt", workspace.say), ExitStack() as undo:
        # Again: until the lease was taken, another process may have recorded it.
        stream, known = _stream(workspace, location, identity, sink, stream.name)
        if not known:
            # The one step that makes it known. Until then a kill leaves nothing; after it, less in the ledger.
            first = GenerationRecord(stream.full_name, 1, location, query_id=read_logs(store).query_id)
            ledger.register_stream(stream, first)
            undo.callback(forget, workspace.home, ledger, stream)
        else:
            record_move(ledger, stream, location)
        if program is not None:
            # By the ledger's record it finds the query of this checkpoint.
            read = program(workspace, stream)
            stream = read._replace(sink=_with_sink(stream, read.sink).sink)
        ledger.register_stream(stream)
        # From here on a failure leaves a stream that is known, and the same command adds what is missing.
        undo.pop_all()
        write_stream_file_of(workspace.home, ledger, stream.full_name)
        entries = copy_new(ledger, stream.full_name, stream.current_generation, store, open_output(stream.sink))
        # Until a run records the query's plan: nothing else shows that a deleted store existed.
        layout = ledger.generation(stream.full_name, stream.current_generation).layout or {}
        stores = state_stores(store)
        if OPERATORS not in layout and stores:
            ledger.update_generation(
                stream.full_name, stream.current_generation, layout={**layout, STATE_STORES: stores}
            )
    return _document(workspace, stream, entries)


def _absolute(location: str) -> str:
    check_no_secret(location)
    local = local_path_of(location)
    return location.rstrip("/") if local is None else os.path.normpath(absolute_path(local))


def _stream(
    workspace: Workspace, location: str, identity: Identity, sink: str | None, name: str | None
) -> tuple[StreamRecord, bool]:
    """The stream to record, and whether it is known. ``identity`` is of the output at ``sink``."""
    found = stream_at(workspace.ledger, location) or stream_moved_to(workspace.ledger, location)
    name = name or (found.name if found is not None else (sink or location).rstrip("/").rpartition("/")[2])
    if STREAM_NAME.fullmatch(name) is None:
        raise UsageError(
            "adopt-name",
            "Invalid stream name: it must be usable as a folder name",
            expected="letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100",
            found=repr(name),
            hint="give one with --name",
        )
    full_name = f"{WATCHED}/{name}"
    if found is not None and found.full_name != full_name:
        raise Refused(
            "adopt-known",
            f"The checkpoint belongs to stream {found.full_name}",
            where=location,
            expected=found.full_name,
            found=full_name,
            hint=f"use that name, or forget the stream first: {command('release', found.full_name)}",
        )
    if found is None:
        if full_name in workspace.ledger.stream_names():
            raise Refused(
                "adopt-taken",
                f"Stream {full_name} has a different checkpoint",
                expected="a name of its own for this checkpoint",
                found=full_name,
                hint=f"give a different name: {command('adopt', location, '--name', 'NAME')}",
            )
        return StreamRecord(WATCHED, name, identity, "append", "", id=str(uuid.uuid4())), False
    return found if sink is None else _with_sink(found, identity), True


def _with_sink(stream: StreamRecord, sink: Identity) -> StreamRecord:
    # A location shows no format, which a run may have recorded; and nothing is compared that is not known.
    if not is_same_sink(stream.sink, sink) and not is_same_sink(sink, stream.sink):
        raise Refused(
            "adopt-sink",
            f"Stream {stream.full_name} is known with a different output",
            expected=sink_text(stream.sink),
            found=sink_text(sink),
            hint="leave --sink out; if it is a program, check that it is started with its usual arguments",
        )
    return stream if stream.has_output else stream._replace(sink=sink)


def _ranges(workspace: Workspace, stream: StreamRecord) -> Document:
    """Batches with recorded ranges, without a gap up to the newest; -1 for none. ``rebuilds_from`` is the oldest that a
    rebuild can read again; ``missing``: lost source data of older batches.
    """
    history = BatchHistory(history_of(workspace.ledger, stream))
    batches = history.batches
    if not batches:
        return {"first": -1, "last": -1, "rebuilds_from": None, "missing": []}
    last = first = batches[-1]
    while first - 1 in history.history.offsets:
        first -= 1
    # The range of a batch begins where the one before it ends.
    oldest = 0 if first == 0 else first + 1
    available, missing = StoreAvailability(), list[str]()
    for batch in range(last, oldest - 1, -1):
        missing = history.missing(batch, batch, available)
        if missing:
            oldest = batch + 1
            break
    rebuilds_from = oldest if oldest <= last else None
    return {"first": first, "last": last, "rebuilds_from": rebuilds_from, "missing": missing}


def _document(workspace: Workspace, stream: StreamRecord, entries: int) -> Document:
    facts = facts_of_stream(workspace, stream)
    report = facts.checkpoint.report
    state = []
    for one in report.operators:
        # The oldest and newest batch whose state every store can load: state version N+1 is after batch N.
        firsts = [store.first for store in one.stores if store.first is not None]
        lasts = [store.last for store in one.stores if store.last is not None]
        loads = one.stores and len(firsts) == len(lasts) == len(one.stores)
        reach = {"first": max(firsts) - 1, "last": min(lasts) - 1} if loads else {"first": None, "last": None}
        state.append({"operator": one.id, "name": one.name, **reach})
    unknown = []
    if not stream.has_output:
        unknown.append(f"where the query writes: {output_command(stream, facts.snapshot.generation.location)}")
    elif facts.marks.written is None:
        why = facts.snapshot.output.unchecked or "this kind of output does not show them"
        unknown.append(f"which batches the output has: {why}")
    if workspace.ledger.last_run(stream.full_name) is None:
        unknown.append("the code of the query and its settings, other than those that the checkpoint pins")
        unknown.append("event times and row counts of the batches: a rebuild reads all recorded batches")
    return {
        "schema": SCHEMA,
        "stream": stream.full_name,
        "checkpoint": report.location,
        "query_id": report.query_id,
        "spark_version": report.spark_at_least,
        "sink": dict(stream.sink),
        "entries": entries,
        "marks": marks_document(facts.marks, "written"),
        "ranges": _ranges(workspace, stream),
        "state": state,
        "damage": len(facts.checkpoint.damage),
        "unknown": unknown,
        "next": command("status", stream.full_name),
    }


def adopt_page(document: Document) -> Group:
    ranges = document["ranges"]
    first = ranges["rebuilds_from"]
    reach = "reads no batch again" if first is None else f"can read batches {first} and later again"
    lost = f"; the source no longer has {ranges['missing'][0]}" if ranges["missing"] else ""
    title = Text(f"{document['stream']}  {counted(document['entries'], 'entry', 'entries')} of its logs recorded")
    examined = f"{counted(document['damage'], 'damaged file')}: {command('doctor', document['stream'])}"
    state = []
    for one in document["state"]:
        kept = "cannot be read" if one["last"] is None else f"of batches {one['first']} to {one['last']}"
        state.append(("state", f"operator {one['operator']} ({one['name']}) {kept}"))
    lines = labelled_rows(
        ("checkpoint", f"{document['checkpoint']}, Spark {document['spark_version'] or 'unknown'} or later"),
        ("marks", marks_text(document["marks"])),
        ("ranges", f"of batches {ranges['first']} to {ranges['last']}" if ranges["last"] >= 0 else "none"),
        ("rebuild", reach + lost),
        *state,
        ("damage", examined if document["damage"] else None),
        *(("unknown", text) for text in document["unknown"]),
        ("next", document["next"]),
    )
    return Group(title, *lines)


def adopt(
    *,
    location: str,
    sink: str | None,
    name: str | None,
    pipeline: str | None,
    master: str | None,
    conf: list[str] | None,
    home: str | None,
    shown_as: Format,
) -> int:
    settings = prepare(home, shown_as)
    spark = parse_conf(conf)
    runtime, session = SparkRuntime(say, spark, master), session_words(master, spark)
    program = None if pipeline is None else _reader_of(pipeline, runtime, session)
    with open_workspace(settings, create=True, say=say) as workspace:
        document = adopt_checkpoint(workspace, location, sink=sink, name=name, program=program)
    show(shown_as, document, lambda: adopt_page(document))
    return 0


def _reader_of(reference: str, runtime: QueryRuntime, session: tuple[str, ...]) -> _ReadProgram:
    """Reads the program with Spark up to the start of its queries, for output and output mode."""
    program = full_reference(reference)
    if not is_application(program):
        raise PipelineError(
            "application-queries",
            "This is not a program that starts its own streaming queries",
            where=program,
            expected=".writeStream in the file, or in what it imports, and no Pipeline",
            found="none, or a Pipeline",
            hint=f"give the program that uses this checkpoint: 'app.py -- ARGUMENTS'; or the directory of "
            f"its output: {command('adopt', 'LOCATION', '--sink', 'DIRECTORY')}",
        )

    def read(workspace: Workspace, stream: StreamRecord) -> StreamRecord:
        runtime.require_spark()
        with runtime.open_replayer(workspace, stream, program, lambda _: None) as replayer:
            sink = replayer.sink_written or stream.sink
            mode = replayer.output_mode
            return stream._replace(sink=sink, output_mode=mode, pipeline_file=program, session=session)

    return read
