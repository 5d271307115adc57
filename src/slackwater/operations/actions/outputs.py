"""The output is cut, built in staging and swapped, or gets the batch of a backfill.

The batch of a backfill has the stream's next id: a sink keyed by ids writes it once. Undo asks the output for the
batch's files or rows, and keeps the answer until all are removed.
"""

from dataclasses import dataclass
from typing import Literal

from slackwater.core.commands import apply_command, command
from slackwater.core.errors import Refused
from slackwater.core.records import GenerationRecord, leader_id
from slackwater.core.sink import BackfillDirectory, Cut, Owner, Swap, cut_step, others_of
from slackwater.core.units import batch_range, counted
from slackwater.ledger.lineage import SINK
from slackwater.ledger.recording.log_copier import copy_new
from slackwater.operations.action import LAYOUT, NOTHING, Action, ActionFacts, Inverse
from slackwater.operations.actions.batches import OneBatch, record_of, run_once
from slackwater.operations.actions.generations import base_of
from slackwater.operations.apply.executor import others_in, refused
from slackwater.operations.apply.operation import (
    BACKUP,
    PLAN_FILE,
    Operation,
    backup_for,
    changed_nothing,
    check_records,
    check_started,
)
from slackwater.operations.plan.plan import BEFORE_ALL
from slackwater.sinks.common.changes import RecordFile
from slackwater.sinks.common.contract import Output
from slackwater.sinks.common.registry import open_each
from slackwater.sinks.files import backfill_output
from slackwater.storage.open import open_write_store


@dataclass(frozen=True, slots=True)
class RestoreSink(Inverse):
    cut: Cut
    kind: Literal["restore-sink"] = "restore-sink"

    def text(self) -> str:
        return f"restore {_batches(self.cut)} in the sink"

    def check(self, operation: Operation) -> None:
        check_records(operation, self)
        if not changed_nothing(operation, self):
            operation.output.check_restore(self.cut, operation.backup)

    def take_back(self, operation: Operation) -> None:
        if not changed_nothing(operation, self):
            operation.output.restore(self.cut, operation.backup)


@dataclass(frozen=True, slots=True)
class CutSink(Action):
    """Cut batches that the output listed; the backup keeps them."""

    cut: Cut
    kind: Literal["cut-sink"] = "cut-sink"

    needs = ("written", "readers", "others")
    changes_in_use = changes_output = True

    @property
    def change(self) -> Cut:
        return self.cut

    def text(self) -> str:
        return f"{cut_step(self.cut.after)}: {_taken_out(self.cut)}, moved to the backup"

    def inverse(self) -> RestoreSink:
        return RestoreSink(self.cut)

    def check_continued(self, operation: Operation) -> None:
        check_started(operation, self)

    def do(self, operation: Operation) -> ActionFacts:
        operation.output.cut(self.cut, operation.history.written, backup_for(operation, self))
        operation.ledger.record_sink_mark(operation.plan.stream, self.cut.after)
        return NOTHING


def _batches(cut: Cut) -> str:
    return batch_range(cut.batches[0], cut.batches[-1])


def _taken_out(cut: Cut) -> str:
    if cut.members:
        return "; ".join(_taken_out(part) for part in cut.members if part.batches)
    files = f"{counted(len(cut.files), 'file')}, {cut.bytes:,} bytes" if cut.files else ""
    rows = counted(cut.rows, "row") if cut.rows is not None else ""
    return ", ".join(filter(None, (rows, files))) or _batches(cut)


@dataclass(frozen=True, slots=True)
class DiscardStaged(Inverse):
    kind: Literal["discard-staged"] = "discard-staged"

    def text(self) -> str:
        return "remove the staged output"

    def take_back(self, operation: Operation) -> None:
        operation.output.discard(operation.plan.id, "staged")


@dataclass(frozen=True, slots=True)
class StageOutput(Action):
    """The staged output has the batches up to ``after``, -1 for none."""

    after: int
    kind: Literal["stage-output"] = "stage-output"

    needs = ("written", "readers", "others")
    changes_output = True

    def text(self) -> str:
        batches = f"with batches 0..{self.after}" if self.after >= 0 else "without any batch"
        return f"prepare a staged output, {batches}"

    def inverse(self) -> DiscardStaged:
        return DiscardStaged()

    def do(self, operation: Operation) -> ActionFacts:
        output, identifier = operation.output, operation.plan.id
        stream = operation.stream
        owner = Owner(stream.id or "", stream.full_name, str(operation.home.location))
        # First: an output of another stream is refused here, and not when its replacement is complete.
        output.claim(owner)
        if not others_in(operation.plan).sure:
            output = output.without_marker() or output
        output.stage(identifier, self.after, operation.history.written)
        output.staged(identifier).claim(owner)
        return NOTHING


@dataclass(frozen=True, slots=True)
class SwapBack(Inverse):
    swap: Swap
    kind: Literal["swap-back"] = "swap-back"

    def text(self) -> str:
        return "put the old output back in its place"

    def check(self, operation: Operation) -> None:
        check_records(operation, self)
        if not changed_nothing(operation, self):
            operation.output.check_swap_back(self.swap, operation.backup)

    def check_unused(self, operation: Operation) -> None:
        """Raises Refused if a stream has read the new output: all rows of the old output would be new to it."""
        output = operation.output
        if operation.state_of(self) == "undoing" or changed_nothing(operation, self):
            # After a kill in the middle of an undo the old output may be back, and its readers are no reason to refuse.
            return
        whole = output.whole(operation.history.written)
        leader, ledger = leader_id(operation.plan.id), operation.ledger
        readers = [
            reader
            for reader in operation.readers(operation.stream, whole)
            # Later stages of the operation are undone with it.
            if all(leader_id(one.id) != leader for one in ledger.operations(reader))
        ]
        if readers:
            raise Refused(
                "cut-was-read",
                "The output that was put in place has been read: all of the old one would be new to its readers",
                where=operation.output.location,
                expected="an output that no other stream has read since",
                found=", ".join(readers),
                hint=f"nothing was changed; the stream can stay with it: {command('status', operation.plan.stream)}",
            )

    def take_back(self, operation: Operation) -> None:
        if not changed_nothing(operation, self):
            operation.output.swap_back(self.swap, operation.backup)


@dataclass(frozen=True, slots=True)
class SwapOutput(Action):
    """Atomic for readers of its log; the old output is kept."""

    swap: Swap
    kind: Literal["swap-output"] = "swap-output"

    needs = ("written", "readers", "others")
    changes_in_use = changes_output = True

    @property
    def change(self) -> Swap:
        return self.swap

    def text(self) -> str:
        return "put it in the place of the output, in one step for readers of its log or table; the old output stays"

    def inverse(self) -> SwapBack:
        return SwapBack(self.swap)

    def check_continued(self, operation: Operation) -> None:
        check_started(operation, self)

    def do(self, operation: Operation) -> ActionFacts:
        operation.output.swap(self.swap, backup_for(operation, self))
        written = operation.output.last_written()
        if written is not None:
            operation.ledger.record_sink_mark(operation.plan.stream, written)
        return NOTHING


_NEVER_CUT = "cut-mismatch"


@dataclass(frozen=True, slots=True)
class _TakenOut:
    backup: str
    cut: Cut


RECORD = RecordFile("backfill-cut.json", "slackwater.backfill-cut/1", _TakenOut)


@dataclass(frozen=True, slots=True)
class CutBackfill(Inverse):
    """Cut the batches after ``after``; only the undo finds their files."""

    after: int
    kind: Literal["cut-backfill"] = "cut-backfill"

    def text(self) -> str:
        return cut_step(self.after)

    def check_unused(self, operation: Operation) -> None:
        if operation.state_of(self) == "undoing":
            # The attempt that was killed has checked it, and may have cut a part since.
            return
        output, batch = operation.output, self.after + 1
        if output.traits.cuts:
            cut = output.cut_after(self.after, operation.history.written)
            readers = operation.readers(operation.stream, cut)
            if readers:
                raise Refused(
                    "cut-was-read",
                    "The batch of the backfill would have to be taken out of the sink, but other streams have read it",
                    where=output.location,
                    found=", ".join(readers),
                    hint=_instead(operation),
                )
            if others_of(cut).any:
                raise refused(operation.plan.stream, others_of(cut), _instead(operation))
        elif any(
            one.traits.skips_known_batches and ((written := one.last_written()) is None or written > self.after)
            for one in _outputs(operation)
        ):
            raise Refused(
                "backfill-kept",
                f"The sink cannot remove what batch {batch} wrote, and would skip the next batch with this id",
                where=output.location,
                expected=f"a sink without batch {batch}",
                hint=_instead(operation),
            )

    def take_back(self, operation: Operation) -> None:
        folder = operation.files
        taken = RECORD.read(folder) or self._look_up(operation)
        if taken is not None:
            try:
                _cut(operation, taken)
            except Refused as error:
                if error.code != _NEVER_CUT:
                    raise
                # Another writer has changed the output since it was looked up, and nothing was taken out.
                taken = self._look_up(operation)
                if taken is not None:
                    _cut(operation, taken)
            operation.ledger.record_sink_mark(operation.plan.stream, self.after)
        # The id is used for other data now: what the sink wrote under it is not the past of the generation in use.
        operation.ledger.remove_lines(
            operation.plan.stream,
            operation.ledger.find_stream(operation.plan.stream).current_generation,
            SINK,
            after=self.after,
        )
        # Last: until all is taken out, a repeated undo needs to know what the output had.
        folder.delete(RECORD.name)

    def _look_up(self, operation: Operation) -> _TakenOut | None:
        output = operation.output
        shown = [written for one in _outputs(operation) if (written := one.last_written()) is not None]
        if max(shown, default=-1) <= self.after or not output.traits.cuts:
            return None
        number = sum(1 for entry in operation.backup.list() if entry.name.startswith("backfill-")) + 1
        taken = _TakenOut(f"backfill-{number}", output.cut_after(self.after, operation.history.written))
        # Before the cut: afterwards the output no longer shows which files or rows the batch wrote.
        RECORD.write(operation.files, taken)
        return taken


@dataclass(frozen=True, slots=True)
class RunBackfill(OneBatch):
    """``ends`` are end offsets by source, as Spark writes them."""

    number: int
    batch: int
    ends: dict[str, str]
    kind: Literal["run-backfill"] = "run-backfill"

    needs = ("generation", "planned", "committed", "written")
    changes_in_use = changes_output = True

    @property
    def ran(self) -> int:
        return self.batch

    def text(self) -> str:
        return f"run batch {self.batch} with generation {self.number} into the sink, and no other batch"

    def inverse(self) -> CutBackfill:
        return CutBackfill(self.batch - 1)

    def do(self, operation: Operation) -> ActionFacts:
        record = record_of(operation, self.number)
        run_once(operation, self, record, lambda replayer: replayer.run_backfill(operation, record))
        # The run does so, too, unless it was killed behind the commit.
        store = operation.store(self.number)
        copy_new(operation.ledger, operation.plan.stream, self.number, store, operation.output)
        written = operation.output.last_written()
        if written is not None:
            operation.ledger.record_sink_mark(operation.plan.stream, written)
        return NOTHING


def _cut(operation: Operation, taken: _TakenOut) -> None:
    backup = open_write_store(operation.folder / BACKUP / taken.backup, private=True)
    operation.output.cut(taken.cut, operation.history.written, backup)


def _instead(operation: Operation) -> str:
    switch = next(one for one in operation.plan.actions if one.switch is not None)
    if operation.state_of(switch) == "done":
        return f"the stream can continue with it: {command('run', operation.plan.pipeline_file, *operation.session)}"
    return f"finish it: {apply_command(str(operation.whole / PLAN_FILE), operation.session)}"


def _outputs(operation: Operation) -> tuple[Output, ...]:
    each = open_each(operation.stream.sink)
    return each if len(each) > 1 else (operation.output,)


@dataclass(frozen=True, slots=True)
class EmptyDirectory(Inverse):
    """Remove the operation's files; the directory stays."""

    output: BackfillDirectory
    kind: Literal["empty-directory"] = "empty-directory"

    def text(self) -> str:
        return f"remove from {self.output.path} what the operation has written to it"

    def check_unused(self, operation: Operation) -> None:
        """Streams that have read the directory would keep rows that are nowhere else."""
        output = backfill_output.open_backfill_output(self.output)
        if operation.state_of(self) == "undoing" or output.owner() is None:
            # A continued undo has checked this, and without the owner file nothing is removed from the directory.
            return
        written = operation.stream._replace(sink=backfill_output.identity(self.output))
        readers = operation.readers(written, output.cut_after(BEFORE_ALL, {}))
        if readers:
            raise Refused(
                "backfill-directory-was-read",
                "Undo would remove the rows of the backfill directory, but other streams have read them",
                where=output.location,
                found=", ".join(readers),
                hint="the backfill directory can stay: the stream does not depend on it",
            )

    def take_back(self, operation: Operation) -> None:
        backfill_output.discard(self.output, operation.plan.id)


@dataclass(frozen=True, slots=True)
class RunIntoDirectory(OneBatch):
    """Readers of the file sink's manifest need every entry from 0 on. ``ends``: end offsets by source, as in Spark's
    log.
    """

    number: int
    ends: dict[str, str]
    output: BackfillDirectory
    kind: Literal["run-into-directory"] = "run-into-directory"

    needs = ("backfill-directory",)

    @property
    def ran(self) -> int:
        return 0

    def text(self) -> str:
        where = f"{self.output.path}, as {self.output.format} files"
        return f"run the batch with generation {self.number} into {where}"

    def inverse(self) -> EmptyDirectory:
        return EmptyDirectory(self.output)

    def do(self, operation: Operation) -> ActionFacts:
        plan, output = operation.plan, self.output
        backfill_output.claim(output, plan.id, plan.stream, str(operation.home.location))
        _, built = base_of(plan, self.number)
        folder, layout = str(operation.checkpoint(self.number)), operation.facts_of(built).get(LAYOUT)
        record = GenerationRecord(plan.stream, self.number, folder, query_id=built.query_id, layout=layout)
        run_once(operation, self, record, lambda replayer: replayer.run_into_directory(operation, record, output))
        # The ledger keeps the range that was read, also once ``prune`` has deleted the checkpoint.
        copy_new(operation.ledger, plan.stream, self.number, operation.store(self.number))
        return NOTHING
