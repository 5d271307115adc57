"""The batches of a new generation: planned, replayed without output, skipped for another checkpoint, or run by the
query, one or all.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from slackwater.checkpoint.layout import commit_path, offset_path
from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.operators import state_stores
from slackwater.checkpoint.writer import delete_log, write_log
from slackwater.core.checkpoint import SourceOffset
from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.program import made_by, parsed_program, program_of_batch
from slackwater.core.records import GenerationRecord
from slackwater.core.sink import STRICT
from slackwater.core.units import batch_range
from slackwater.formats.text_log import parse_commit_entry, render_commit_entry, render_offset_entry
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.operations.action import COMMITTED, COUNTED, LAYOUT, NOTHING, PLANNED, PROGRAMS, Action, ActionFacts
from slackwater.operations.actions.generations import (
    StartGeneration,
    base_of,
    check_same_code,
    check_same_query,
    entry_of,
)
from slackwater.operations.apply.operation import Operation, Replayer
from slackwater.operations.goals.backfill import check_writer, stateful
from slackwater.operations.plan.context import ends_after
from slackwater.operations.plan.document import plan_again
from slackwater.operations.plan.plan import BEFORE_ALL, Plan
from slackwater.sources.common.source import encoded
from slackwater.storage.protocols import WriteStore

ONLY_RESET = "only a reset that processes everything again is exact"


@dataclass(frozen=True, slots=True)
class PlanBatch(Action):
    """Plan ``batch`` with its recorded range as the next batch."""

    number: int
    batch: int
    kind: Literal["plan-batch"] = "plan-batch"

    def text(self) -> str:
        return f"plan batch {self.batch} with its recorded range"

    def do(self, operation: Operation) -> ActionFacts:
        entry = encoded(operation.history.offsets[self.batch])
        write_log(operation.store(self.number), offset_path(self.batch), entry)
        return NOTHING


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """SQL settings of the original runs; ``None``: not recorded, so the session's are used."""

    __pydantic_config__: ClassVar = STRICT

    first: int
    last: int
    settings: dict[str, str] | None


@dataclass(frozen=True, slots=True)
class ReplayBatches(Action):
    number: int
    first: int
    last: int
    settings: tuple[ReplaySettings, ...]
    kind: Literal["replay-batches"] = "replay-batches"

    def text(self) -> str:
        return f"replay {batch_range(self.first, self.last)} under their own ids, without output"

    def do(self, operation: Operation) -> ActionFacts:
        """Replays the batches. Raises Refused if Spark reads other rows. An interrupted replay restarts at the first
        unchecked batch: running a batch again is exact.
        """
        replayer = operation.open_replayer()
        code = replayer.code()
        check_same_code(operation, self.number, replayer)
        store, counted = operation.store(self.number), {}
        logs = read_logs(store)
        first = max(self.first, logs.committed + 1)
        # Spark commits a batch before its rows are checked; the next entry is written after the check. So the newest
        # batch of an interrupted replay may be unchecked.
        if self.first <= logs.committed == logs.planned:
            operation.check_lease()
            first = logs.committed
            delete_log(store, commit_path(first))
        for batch in range(first, self.last + 1):
            # Nothing is journaled between two batches, so a lease that was lost has to be noticed here.
            operation.check_lease()
            recorded = most = None
            if code.counts_as(operation.history.runs.get(batch)):
                recorded, most = operation.history.input_rows.get(batch), operation.batches.most_rows(batch)
            rows = _replay(self, operation, store, batch)
            if _is_exceeded(rows, recorded, most):
                # From the state before it, as Spark runs a batch again that was not committed.
                delete_log(store, commit_path(batch))
                rows = _replay(self, operation, store, batch, again=True)
            note = _check_rows(operation, batch, rows, (recorded, most))
            if recorded is None:
                _check_served(operation, batch, rows, replayer)
            if note is not None:
                operation.progress.say(note)
                counted[str(batch)] = {"recorded": recorded, "replayed": rows}
            operation.progress.batch(batch)
        written, known = commit_path(self.last), operation.batches.commit(self.last)
        if known is not None:
            # Spark loses per-operator maxima at each start, so the recorded watermark follows the last batch.
            commit = parse_commit_entry(store.read(written))
            if commit.next_batch_watermark_ms != known.next_batch_watermark_ms:
                corrected = commit._replace(next_batch_watermark_ms=known.next_batch_watermark_ms)
                write_log(store, written, render_commit_entry(corrected))
        # Analysed under the settings of the newest batch, as its state is: the time zone, for example, is in the plan.
        programs: ActionFacts = {PROGRAMS: made_by(replayer.program(_settings(self, self.last)))}
        return {**programs, COUNTED: counted} if counted else programs


def _settings(action: ReplayBatches, batch: int) -> Mapping[str, str] | None:
    return next((group.settings for group in action.settings if group.first <= batch <= group.last), None)


def _replay(action: ReplayBatches, operation: Operation, store: WriteStore, batch: int, *, again: bool = False) -> int:
    entry = encoded(operation.history.offsets[batch])
    if not store.exists(offset_path(batch)) or store.read(offset_path(batch)) != entry:
        write_log(store, offset_path(batch), entry)
    settings = _settings(action, batch)
    more = batch < action.last and settings == _settings(action, batch + 1)
    if more:
        present, following = (operation.batches.offset(one).metadata for one in (batch, batch + 1))
        more = present is not None and following is not None and present.conf == following.conf
    # The stream's own setting of changelogs counts here; only the empty base needs whole files.
    ran, input_rows = operation.open_replayer().run_pending(
        store.location, changelog=True, settings=settings, more=more, again=again
    )
    # A query that finds no planned entry plans a batch of its own, whose rows the no-op sink discards.
    if ran != batch:
        raise Refused(
            "replay-strayed",
            "Spark ran a different batch than the recorded one",
            where=f"stream {operation.plan.stream}",
            expected=str(batch),
            found=str(ran),
            hint=f"nothing in use was changed; plan again: {plan_again(operation.plan)}",
        )
    return input_rows


def _is_exceeded(rows: int, recorded: int | None, most: int | None) -> bool:
    """Whether a replay read more rows than the batch: ``recorded``, at most ``most``; ``None``: other code counted.

    Spark counts the rows that tasks have read. If an executor is lost, tasks run and count again
    (``DAGScheduler.handleTaskCompletion``): a count can be too high, never too low. A transactional or compacted Kafka
    topic has fewer rows than offsets. A query can read rows several times, such as for the samples of
    ``repartitionByRange``: the count is then a multiple, and only equal counts can be compared.
    """
    return rows != recorded and any(known is not None and rows > known for known in (recorded, most))


def _check_served(operation: Operation, batch: int, rows: int, replayer: Replayer) -> None:
    """Raises Refused (``rows-differ``) if a source has fewer rows than other code counted.

    Counts differ if either code reads rows twice or skips some. So each source whose counts depend on code is read once
    more, unless the replay read the recorded number or the full range.
    """
    recorded = operation.ledger.batch(operation.plan.stream, batch)
    spans = operation.batches.spans(batch, batch)
    if recorded is None or batch not in operation.history.input_rows or len(spans) != len(recorded.sources):
        return
    if rows in (recorded.input_rows, operation.batches.most_rows(batch)):
        return
    generation = operation.ledger.generation(operation.plan.stream, operation.stream.current_generation)
    program = parsed_program(generation.programs, batch)
    reads = program.sources if program is not None else ()
    for index, ((kind, span), source) in enumerate(zip(spans, recorded.sources, strict=True)):
        left = replayer.rows_served(span, reads[index].options if index < len(reads) else {})
        if left is not None and left < source.input_rows and left != kind.rows(span):
            raise _fewer(operation, f"A read of source {span.source}", batch, left, source.input_rows)


def _check_rows(operation: Operation, batch: int, rows: int, expected: tuple[int | None, int | None]) -> str | None:
    recorded, most = expected
    if rows == recorded or (recorded is None and not _is_exceeded(rows, recorded, most)):
        return None
    if recorded is None or rows > recorded:
        again = f"where an executor was lost in both replays, plan again: {plan_again(operation.plan)}"
        known, causes = (
            (
                f"its range has no more than {most}",
                f"{again}; where the query reads its rows several times in a batch, {ONLY_RESET}",
            )
            if recorded is None
            else (
                f"{recorded} rows are recorded",
                f"restore the source's data, which has more than the batch read, or, {again}",
            )
        )
        raise Refused(
            "rows-differ",
            f"The replay of batch {batch} read {rows} rows; {known}",
            where=f"stream {operation.plan.stream}",
            expected=f"{most if recorded is None else recorded} rows",
            found=f"{rows} rows, also in a second replay of the batch",
            hint=f"nothing in use was changed; {causes}",
        )
    if rows == most:
        why = f"its range has no more than {most}"
    elif rows > 0 and operation.batches.is_intact(batch, StoreAvailability()):
        why = "its files are still those that it read"
    else:
        raise _fewer(operation, "The replay", batch, rows, recorded)
    return (
        f"batch {batch} has {rows} rows, and not the {recorded} that are recorded: {why}, and Spark counts rows again "
        "when an executor is lost"
    )


def _fewer(operation: Operation, reader: str, batch: int, rows: int, recorded: int) -> Refused:
    return Refused(
        "rows-differ",
        f"{reader} of batch {batch} read {rows} rows; {recorded} rows are recorded",
        where=f"stream {operation.plan.stream}",
        expected=f"{recorded} rows",
        found=f"{rows} rows",
        hint="restore the source's data; nothing in use was changed. If the source has all of it, an executor was lost "
        "while the batch ran, and Spark counted rows again: what the source shows does not prove that, so that "
        + ONLY_RESET,
    )


@dataclass(frozen=True, slots=True)
class SkipBatch(Action):
    number: int
    batch: int
    kind: Literal["skip-batch"] = "skip-batch"

    def text(self) -> str:
        return f"skip batch {self.batch} in it: the query continues with batch {self.batch + 1} from where it is"

    def do(self, operation: Operation) -> ActionFacts:
        """Repeats entries, from which Spark continues."""
        store, before = operation.store(self.number), self.batch - 1
        write_log(store, offset_path(self.batch), store.read(offset_path(before)))
        write_log(store, commit_path(self.batch), store.read(commit_path(before)))
        return NOTHING


def skipped_in(plan: Plan, number: int) -> int | None:
    return next((one.batch for one in plan.actions if isinstance(one, SkipBatch) and one.number == number), None)


class OneBatch(Action):
    """``ends``: end offsets by source, as Spark writes them."""

    __slots__ = ()

    number: int
    ends: dict[str, str]

    reads = "range"
    uses_checkpoint = True

    @property
    @abstractmethod
    def ran(self) -> int:
        """The id of the batch."""


def run_once(operation: Operation, action: OneBatch, record: GenerationRecord, run: Callable[[Replayer], None]) -> None:
    """Runs the batch; a killed run is continued exactly-once. Raises Refused if the code has changed since the first
    attempt, or Spark ran a different batch.
    """
    store = operation.store(action.number)
    if read_logs(store).committed < action.ran:
        replayer = operation.open_replayer()
        # An output may already hold the batch from the first attempt.
        if replayer.profile().stateful:
            raise stateful(operation.plan.stream)
        check_writer(operation.stream, replayer, into_directory=not action.changes_in_use)
        check_same_code(operation, action.number, replayer, writes=True)
        # Before the run: rows of runs and batches refer to their generation by a foreign key.
        operation.ledger.add_generation(record)
        # Without a planned entry Spark would plan a batch of its own, with all that the sources have.
        _, base = base_of(operation.plan, action.number)
        if isinstance(base, StartGeneration):
            ends = tuple(SourceOffset(start.source, action.ends[start.source]) for start in base.starts)
            entry = entry_of(operation, base)._replace(offsets=ends)
            write_log(store, offset_path(action.ran), render_offset_entry(entry))
        run(replayer)
    found = read_logs(store)
    if (found.planned, found.committed) != (action.ran, action.ran):
        raise Refused(
            "replay-strayed",
            "Spark ran a different batch than the backfill's",
            where=store.location,
            expected=f"batch {action.ran} planned and committed",
            found=f"batch {found.planned} planned, batch {found.committed} committed",
            hint=f"go back: {command('undo', operation.plan.id, '--yes')}"
            if action.changes_in_use
            # No stream depends on a backfill directory: what was written to it is removed.
            else f"nothing in use was changed; plan again: {plan_again(operation.plan)}",
        )


def record_of(operation: Operation, number: int) -> GenerationRecord:
    plan, facts_of = operation.plan, operation.journal.facts
    index, built = base_of(plan, number)
    skipped = skipped_in(plan, number)
    begins: int | None = operation.history.begins or None
    if built.last < 0:
        begins = None
    elif skipped is not None:
        begins = skipped + 1
    elif isinstance(built, StartGeneration):
        begins = built.last + 1
    ran = next((one for one in plan.actions if isinstance(one, OneBatch) and one.ran == skipped), None)
    known = next((one.programs for one in operation.ledger.generations(plan.stream) if one.number == number), None)
    if not known:
        # The actions that work on a checkpoint have its number.
        worked = [facts_of(place) for place, one in enumerate(plan.actions) if getattr(one, "number", None) == number]
        known = next((one[PROGRAMS] for one in reversed(worked) if PROGRAMS in one), ())
    return GenerationRecord(
        plan.stream,
        number,
        str(operation.checkpoint(number)),
        query_id=built.query_id,
        layout={**facts_of(index).get(LAYOUT, {}), "state_stores": state_stores(operation.store(number))},
        based_at=built.last if skipped is None else skipped,
        parent=next(one.switch.old for one in plan.actions if one.switch is not None) if ran is None else ran.number,
        source_cut=ends_after(
            operation.batches, BEFORE_ALL if isinstance(built, StartGeneration) or skipped is not None else built.last
        ),
        begins=begins,
        programs=list(known),
    )


@dataclass(frozen=True, slots=True)
class RunStaged(Action):
    number: int
    kind: Literal["run-staged"] = "run-staged"

    needs = ("pipeline",)
    changes_output = uses_checkpoint = True
    reads = "rest"

    def text(self) -> str:
        return f"run the query with generation {self.number} into it, until it has caught up"

    def do(self, operation: Operation) -> ActionFacts:
        """A killed run is continued exactly-once. Raises Refused if the query has changed."""
        replayer = operation.open_replayer()
        check_same_code(operation, self.number, replayer)
        name, ledger = operation.plan.stream, operation.ledger
        known = next((one for one in ledger.generations(name) if one.number == self.number), None)
        if known is not None and any(run.generation == self.number for run in ledger.runs(name)):
            ran = program_of_batch(known.programs, read_logs(operation.store(self.number)).committed + 1)
            check_same_query(operation.plan, ran, replayer.program(), writes=True)
        generation = record_of(operation, self.number)
        # Before the run: rows of runs and batches refer to their generation by a foreign key.
        ledger.add_generation(generation)
        replayer.run_staged(operation, generation)
        logs = read_logs(operation.store(self.number))
        return {PLANNED: logs.planned, COMMITTED: logs.committed}
