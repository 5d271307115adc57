"""New generations: built for a rebuild, copied, or started at chosen positions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from slackwater.checkpoint.layout import METADATA, STATE, commit_path, offset_path, parse_state_file, source_path
from slackwater.checkpoint.writer import copy_state, delete_log, rename_log, rename_state_file, write_log
from slackwater.core.checkpoint import OffsetEntry, OffsetMetadata, SourceOffset
from slackwater.core.commands import command, undo_command
from slackwater.core.errors import Refused
from slackwater.core.program import Entry, QueryProfile, entries_until, made_by, program_of_batch
from slackwater.diagnose.program_changes import other_rows, recorded_verdict
from slackwater.formats.compactible import DEFAULT_INTERVAL
from slackwater.formats.text_log import render_offset_entry
from slackwater.ledger.recording.batch_history import BatchHistory, offsets_by_source
from slackwater.ledger.recording.snapshot import profile_of
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.operations.action import CODE, LAYOUT, PROGRAMS, Action, ActionFacts, Inverse
from slackwater.operations.apply.executor import DIGEST_SHOWN, check_restorable, compared_programs
from slackwater.operations.apply.operation import Operation, Replayer
from slackwater.operations.goals.backfill import listed, ranges_of
from slackwater.operations.plan.context import bounds_of, check_reproducible, refuse_replaced
from slackwater.operations.plan.contributing import first_contributing
from slackwater.operations.plan.document import duration, plan_again
from slackwater.operations.plan.plan import Plan, SourceStart
from slackwater.sinks.common.changes import check_removable
from slackwater.sources.common.source import encoded
from slackwater.storage.open import open_read_store
from slackwater.storage.protocols import WriteStore

CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


COMPACT_INTERVAL = "spark.sql.streaming.fileSource.log.compactInterval"


@dataclass(frozen=True, slots=True)
class RemoveGeneration(Inverse):
    """The operation's journal is the evidence that it built the checkpoint."""

    number: int
    kind: Literal["remove-generation"] = "remove-generation"

    removes_generation = True

    def text(self) -> str:
        return f"remove generation {self.number}, which the operation has built"

    def check(self, operation: Operation) -> None:
        check_removable(operation.store(self.number))

    def take_back(self, operation: Operation) -> None:
        # The record last: ``prune`` leaves a folder that no record names.
        operation.store(self.number).delete_tree()
        operation.ledger.remove_generation(operation.plan.stream, self.number)
        write_stream_file_of(operation.home, operation.ledger, operation.plan.stream)


def query_in(plan: Plan) -> str | None:
    return next((action.query_id for action in plan.actions if isinstance(action, Base)), None)


class Base(Action):
    """The base of a new generation; a plan has such an action for each."""

    __slots__ = ()

    number: int
    query_id: str
    last: int

    @property
    def built(self) -> int:
        return self.number

    @property
    def planned(self) -> int:
        """The newest batch in ``offsets/`` before the checkpoint is used."""
        return self.last

    def inverse(self) -> RemoveGeneration:
        return RemoveGeneration(self.number)

    def check_start(self, operation: Operation) -> None:
        """An operation writes only into a folder of its own."""
        folder = operation.checkpoint(self.number)
        if operation.store(self.number).exists(""):
            raise Refused(
                "generation-exists",
                f"The checkpoint of generation {self.number} exists already, and was not made by this operation",
                where=str(folder),
                expected="no such folder",
                hint=f"plan again: {plan_again(operation.plan)}",
            )


def base_of(plan: Plan, number: int) -> tuple[int, Base]:
    found = ((index, one) for index, one in enumerate(plan.actions) if one.built == number and isinstance(one, Base))
    return next(found)


def refuse_lost(operation: Operation, lost: Sequence[str], instead: str = "") -> None:
    """Raises Refused if the source has lost it. ``instead``: the alternative for the hint."""
    if lost:
        raise Refused(
            "source-rows-lost",
            "The source no longer has rows that have to be read",
            where=f"stream {operation.plan.stream}",
            found=listed(lost),
            hint=f"restore the source's data; nothing was changed{instead}",
        )


def new_folder(operation: Operation, action: Base) -> WriteStore:
    store = operation.store(action.number)
    # Only reached after the journal records that the folder is this operation's own.
    store.delete_tree()
    # Sinks such as Delta's record batches under this id: under a new one they would write them a second time.
    write_log(store, METADATA, f'{{"id":"{action.query_id}"}}'.encode())
    return store


def write_sources(
    store: WriteStore, newest: int, batches: BatchHistory, interval: int, starts: Mapping[str, str | None]
) -> None:
    """``starts``: initial offsets of an empty base."""
    ends = offsets_by_source(batches.offset(newest)) if newest >= 0 else {}
    for source, log in batches.history.sources.items():
        end = ends.get(source)
        kind = batches.kind(source, end)
        files = dict(kind.log_until(end, log, interval))
        # A Kafka source takes the offsets in ``sources/<i>/0`` as its start, so that the range of the base is empty.
        base = kind.empty_base(starts[source]) if source in starts else None
        files.update(base.log if base is not None else {})
        for name, content in files.items():
            write_log(store, source_path(batches.log_of(source), name), content)


def write_positions(store: WriteStore, batches: BatchHistory, batch: int, *, alone: bool) -> None:
    """``alone``: also as the batch before, because Spark reads two when it starts."""
    entry = encoded(batches.history.offsets[batch])
    for number in range(max(batch - 1, 0) if alone else batch, batch + 1):
        write_log(store, offset_path(number), entry)


def write_entries(store: WriteStore, batches: BatchHistory, first: int, last: int) -> None:
    """An entry without a commit gets the batch's own watermark."""
    history = batches.history
    if last >= 0 and last - 1 not in history.offsets:
        # After a reset nothing of the batches before its first one is known.
        write_positions(store, batches, last, alone=True)
    for batch in range(first, last + 1):
        if batch not in history.offsets:
            continue
        write_log(store, offset_path(batch), encoded(history.offsets[batch]))
        commit = batches.commit_text(batch) or f'v1\n{{"nextBatchWatermarkMs":{batches.offset(batch).watermark_ms}}}'
        write_log(store, commit_path(batch), encoded(commit))


def run_empty_base(operation: Operation, store: WriteStore, entry: OffsetEntry, first: int) -> None:
    """Runs batch 0, with which Spark lays out each state store; it becomes the batch before ``first``."""
    batches, replayer = operation.batches, operation.open_replayer()
    bases = {one.source: batches.kind(one.source, one.text).empty_base(one.text) for one in entry.offsets}
    empty = tuple(
        one._replace(text=base.end) if (base := bases[one.source]) is not None else one for one in entry.offsets
    )
    for source, base in bases.items():
        for name, content in (base.log if base is not None else {}).items():
            write_log(store, source_path(batches.log_of(source), name), content)
    write_log(store, offset_path(0), render_offset_entry(entry._replace(offsets=empty)))
    # A changelog of an empty version would not be the zip that the renaming turns into a snapshot.
    batch, rows = replayer.run_pending(store.location, changelog=False)
    if (batch, rows) != (0, 0):
        raise Refused(
            "base-not-empty",
            "The base of the new checkpoint read rows; its range was not empty for this source",
            where=store.location,
            expected="batch 0 with 0 rows",
            found=f"batch {batch} with {rows} rows",
            hint="a rebuild from batch 0 needs no base: "
            f"{command('plan', 'rebuild', operation.plan.stream, '--retention', 'all')}",
        )
    # ``_metadata`` and ``_stateSchema`` are numbered by batch or schema, and not by version of the state.
    for folder in [folder for folder in store.folders(STATE) if "/_" not in folder.path]:
        for name in folder.files:
            state_file = parse_state_file(name)
            if state_file is not None and state_file.version == 1 and first > 1:
                # ``HDFSBackedStateStoreProvider`` applies a delta to the version before it, which does not exist here.
                kind = "snapshot" if state_file.kind == "delta" else state_file.kind
                unique = f"_{state_file.unique_id}" if state_file.unique_id else ""
                rename_state_file(store, f"{folder.path}/{name}", f"{folder.path}/{first}{unique}.{kind}")
    if first > 1:
        rename_log(store, commit_path(0), commit_path(first - 1))
    # The range of the base was made empty: its entry is replaced by one that ends where the first batch starts.
    delete_log(store, offset_path(0))


def check_same_code(operation: Operation, number: int, replayer: Replayer, *, writes: bool = False) -> None:
    """Raises Refused if other code started the checkpoint.

    Equal files can have different queries, because a query may read settings from other files. So state, positions and,
    if it ``writes``, the rows read are compared: an output may already hold the batch from an earlier attempt. Written
    values may differ, such as a time.
    """
    index, base = base_of(operation.plan, number)
    facts, digest = operation.journal.facts(index), replayer.code().digest
    if CODE not in facts:
        # A copy, of state that earlier programs have made; the present one continues it, whatever it is.
        return
    if facts[CODE] != digest:
        raise pipeline_edited(operation.plan, str(facts[CODE])[:DIGEST_SHOWN], digest[:DIGEST_SHOWN])
    started = program_of_batch(cast("Sequence[Entry]", facts.get(PROGRAMS, ())), max(base.last, 0))
    check_same_query(operation.plan, started, replayer.program(), writes=writes)


def check_same_query(
    plan: Plan, started: Mapping[str, object] | None, now: Mapping[str, object] | None, *, writes: bool
) -> None:
    found = [one.text for one in recorded_verdict(started, now).unaccepted(frozenset())]
    found += other_rows(started, now) if writes else ()
    if found:
        raise pipeline_edited(plan, "the query of the first attempt", "; ".join(dict.fromkeys(found)))


def pipeline_edited(plan: Plan, expected: str, found: str) -> Refused:
    """Staging was removed; a backfill has reached the output."""
    in_output = any(action.reads is not None and action.changes_in_use for action in plan.actions)
    return Refused(
        "pipeline-edited",
        "The pipeline, or a file that it reads, was edited during the operation; rows or state of two versions "
        "would be mixed",
        where=plan.pipeline_file,
        expected=expected,
        found=found,
        hint=f"restore the file or the setting, or go back: {undo_command(plan.id)}"
        if in_output
        else f"nothing in use was changed; plan again: {plan_again(plan)}",
    )


@dataclass(frozen=True, slots=True)
class BuildGeneration(Base):
    """``pending``: the batch after ``last``, planned with its recorded range."""

    number: int
    query_id: str
    first: int
    last: int
    pending: int | None
    kind: Literal["build-generation"] = "build-generation"

    needs = ("generation", "planned", "committed", "written", "history", "pipeline", "source-files")

    @property
    def planned(self) -> int:
        return self.last if self.pending is None else self.pending

    def text(self) -> str:
        return f"build generation {self.number} in staging, with the query's id {self.query_id}"

    def do(self, operation: Operation) -> ActionFacts:
        replayer, batches = operation.open_replayer(), operation.batches
        profile = replayer.profile()
        _check_query(operation, batches, replayer, profile)
        # Spark would leave missing input out, or fail on it late.
        available = StoreAvailability(replayer.served_positions())
        refuse_lost(operation, batches.missing_for(self.first, self.last, available, operation.plan.request.ranges))
        replaced = batches.replaced(self.first, self.last, available)
        refuse_replaced(operation.plan.stream, replaced, "nothing in use was changed")
        store = new_folder(operation, self)
        # After a reset nothing may have been written yet: there is no batch to replay, but an empty state to lay out.
        on_base = self.first > 0 and (profile.stateful or self.first <= self.last)
        starts = offsets_by_source(batches.offset(self.first - 1)) if on_base else {}
        write_sources(store, self.planned, batches, replayer.compact_interval(), starts)
        if self.first > self.last and not on_base:
            # ``MicroBatchExecution.populateStartOffsets`` reads the newest entry and the one before it.
            write_entries(store, batches, max(self.last - 1, 0), self.last)
        elif on_base:
            run_empty_base(operation, store, batches.offset(self.first - 1), self.first)
            write_positions(store, batches, self.first - 1, alone=self.first > self.last)
        return {LAYOUT: profile.as_json(), CODE: replayer.code().digest, PROGRAMS: made_by(replayer.program())}


def _check_query(operation: Operation, batches: BatchHistory, replayer: Replayer, profile: QueryProfile) -> None:
    """Raises Refused if the upgraded query needs older batches: a longer retention, or other rows."""
    facts = operation.plan.facts
    if facts.target < 0:
        # From batch 0 on nothing is replayed: the batches run again with their output.
        return
    plan = operation.plan
    check_reproducible(profile, operation.stream, plan.request)
    program = replayer.program()
    stream = operation.stream._replace(session=operation.session)
    check_restorable(operation.ledger, stream, facts.target, program, plan.pipeline_file)
    recorded = profile_of(operation.ledger.generation(operation.stream.full_name, operation.stream.current_generation))
    given = plan.request.retention_ms
    state = bounds_of(profile, recorded, operation.stream.output_mode, given)
    programs = compared_programs(operation.ledger, operation.stream, program)
    code = replayer.code()._replace(programs=programs)
    needed = first_contributing(batches, facts.target, state, code)
    if needed < facts.contributing:
        runs = batches.history.runs
        same_rows = all(code.reads_as(runs.get(batch)) for batch in batches.history.offsets)
        raise Refused(
            "retention-longer",
            "The current query needs older batches than the plan assumed",
            where=f"stream {operation.plan.stream}",
            expected=f"batches from {needed}",
            found=f"batches from {facts.contributing}",
            # Where a retention was asked for, or equal files read other rows, the next plan would be the same with it.
            hint="plan again: "
            + plan_again(plan, retention=duration(state.retention_ms if given is None and same_rows else None)),
        )


@dataclass(frozen=True, slots=True)
class CopyGeneration(Base):
    """``pending``: the batch after ``last``, planned with its recorded range; ``state``: the newest batch whose state
    is copied.
    """

    number: int
    source: int
    query_id: str
    last: int
    pending: int | None
    state: int | None
    kind: Literal["copy-generation"] = "copy-generation"

    needs = ("generation", "planned", "committed", "written", "history", "source-files")

    @property
    def planned(self) -> int:
        return self.last if self.pending is None else self.pending

    def text(self) -> str:
        if self.last < 0:
            what = "without any batch"
        elif self.state is None:
            what = f"with the ranges up to batch {self.last}"
        else:
            what = f"with the state up to batch {self.state}"
        return f"copy generation {self.source} to generation {self.number} in staging, {what}"

    def do(self, operation: Operation) -> ActionFacts:
        generation = operation.ledger.generation(operation.plan.stream, self.source)
        store = new_folder(operation, self)
        run, batches = operation.ledger.last_run(operation.plan.stream), operation.batches
        text = ((run.settings if run is not None else None) or {}).get(COMPACT_INTERVAL, "")
        interval = int(text) if text.isascii() and text.isdigit() and int(text) > 0 else DEFAULT_INTERVAL
        write_sources(store, self.planned, batches, interval, {})
        oldest = max(self.last - 1, 0)
        if self.state is not None:
            # In format 2 commits name the state files: all batches with state stay.
            kept = batches.history.commits.keys() & batches.history.offsets
            oldest = min([batch for batch in kept if batch <= self.last], default=self.last)
        write_entries(store, batches, oldest, self.last)
        if self.state is not None:
            # Where the ledger has it: a checkpoint that was there before is in no home.
            copy_state(open_read_store(generation.location), store, self.state)
        return {LAYOUT: dict(generation.layout or {}), PROGRAMS: entries_until(generation.programs, self.last)}


@dataclass(frozen=True, slots=True)
class StartGeneration(Base):
    """``last`` -1: batch 0 is the next."""

    number: int
    query_id: str
    last: int
    starts: tuple[SourceStart, ...]
    kind: Literal["start-generation"] = "start-generation"

    needs = ("generation", "planned", "committed", "written", "pipeline")

    def log_of(self, start: SourceStart) -> dict[str, str]:
        """The source's log to write. If a source cannot start without a batch, its whole first batch is planned."""
        return start.log if self.last >= 0 or start.first is None else start.first

    def text(self) -> str:
        before = f"behind batch {self.last}" if self.last >= 0 else "before batch 0"
        return (
            f"build generation {self.number} in staging, {before}, with its sources at the positions above and no state"
        )

    def do(self, operation: Operation) -> ActionFacts:
        replayer = operation.open_replayer()
        profile = replayer.profile()
        ranges = ranges_of(operation.plan.request)
        if ranges:
            # The batch would fail halfway, or leave rows out.
            available = StoreAvailability(replayer.served_positions())
            lost = [line for kind, span in ranges for line in kind.unavailable(span, available)]
            refuse_lost(operation, lost, f"; or plan again: {plan_again(operation.plan)}")
        store = new_folder(operation, self)
        if self.last >= 0:
            entry = entry_of(operation, self)
            # The first batch loads the state of the batch before it: an empty version of each store has to exist.
            if profile.stateful:
                run_empty_base(operation, store, entry, self.last + 1)
            else:
                # Without a commit Spark would take the empty batch for an unfinished one, and run it into the output.
                write_log(store, commit_path(self.last), b'v1\n{"nextBatchWatermarkMs":0}')
            # Spark reads the entries of two batches when it starts.
            for batch in range(max(self.last - 1, 0), self.last + 1):
                write_log(store, offset_path(batch), render_offset_entry(entry))
        for start in self.starts:
            for name, content in self.log_of(start).items():
                write_log(store, source_path(start.source, name), encoded(content))
        return {LAYOUT: profile.as_json(), CODE: replayer.code().digest, PROGRAMS: made_by(replayer.program())}


def entry_of(operation: Operation, action: StartGeneration) -> OffsetEntry:
    batches = operation.batches
    metadata = batches.offset(batches.batches[-1]).metadata if batches.batches else None
    # The time of the plan: Spark takes ``current_timestamp()`` from it, and each attempt must write the same rows.
    planned_ms = round(datetime.fromisoformat(operation.plan.made_at).timestamp() * 1000)
    # Spark pins the state store's provider and the number of state partitions in the entry (``OffsetSeqMetadata``).
    conf = metadata.conf if metadata is not None else {}
    offsets = tuple(SourceOffset(start.source, start.offset) for start in action.starts)
    return OffsetEntry(1, OffsetMetadata(0, planned_ms, conf), offsets)
