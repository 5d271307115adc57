"""Builds the plan of a rebuild: continue after the last written batch, with state recomputed from older batches."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from itertools import groupby

from slackwater.diagnose.words import batch_range
from slackwater.errors import Refused
from slackwater.model.history import History
from slackwater.model.plan import (
    Action,
    BuildGeneration,
    Cost,
    CutSink,
    Facts,
    Plan,
    PlanBatch,
    Precondition,
    PreconditionName,
    ReplayBatches,
    ReplaySettings,
    Request,
    SwitchGeneration,
    VerifyGeneration,
)
from slackwater.model.profile import QueryProfile
from slackwater.model.sink import Cut
from slackwater.model.snapshot import MemberSeen, Snapshot
from slackwater.plan.batch_history import BatchHistory, offsets_by_source
from slackwater.plan.contributing import Code, StateBounds, first_contributing
from slackwater.plan.inverse import undo_of
from slackwater.plan.rebuild_notes import notes_of, risks_of
from slackwater.plan.words import ALL, plan_command

NOT_REPRODUCIBLE = {
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark: the first row of a key wins, and the order of rows "
    "inside a batch is not fixed",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState: a function of the user's own",
    "FlatMapGroupsWithState": "flatMapGroupsWithState: a function of the user's own",
    "TransformWithState": "transformWithState: a function of the user's own",
    "TransformWithStateInPandas": "transformWithState: a function of the user's own",
    "TransformWithStateInPySpark": "transformWithState: a function of the user's own",
    "GlobalLimit": "limit: which rows come first is not fixed",
}

BEFORE_ALL = -1
"""The target of a rebuild of a stream from its beginning: nothing stays written, batch 0 is the next one."""


@dataclass(frozen=True, slots=True)
class Rebuild:
    """What a rebuild is planned from.

    ``target`` is the batch asked for, ``None`` for the last written one. ``query`` is the profile of the present code,
    ``None`` where it was not needed or could not be read; ``number`` is the next generation's; ``environment`` names
    the variables that the pipeline file reads.
    """

    snapshot: Snapshot
    history: History
    request: Request
    target: int | None
    code: Code
    number: int
    query: QueryProfile | None = None
    environment: tuple[str, ...] = ()

    @property
    def batches(self) -> BatchHistory:
        """The history, decoded."""
        return BatchHistory(self.history)

    @property
    def written(self) -> int:
        """The newest batch the sink shows, -1 for none; of a sink that cannot show it, the newest committed one."""
        return self.snapshot.written_or_committed


@dataclass(frozen=True, slots=True)
class Scope:
    """Which batches a rebuild is about. ``first`` to ``target`` are replayed, ``pending`` stays planned behind them."""

    target: int
    first: int
    pending: int | None
    state: StateBounds


def target_batch(rebuild: Rebuild) -> int:
    """The batch to continue after: the one asked for, else the last written one, else the newest that is recorded.

    ``BEFORE_ALL`` where nothing was ever written. Raises Refused where the sink shows nothing though something was
    written, or less than what was asked for.
    """
    stream, written = rebuild.snapshot.stream, rebuild.written
    if rebuild.target == BEFORE_ALL:
        return BEFORE_ALL
    _check_shown(rebuild, written)
    if rebuild.target is not None and rebuild.target > written:
        raise Refused(
            "target-unwritten",
            f"The sink of stream {stream.name} does not hold batch {rebuild.target} yet",
            expected=f"a batch from 0 to {written}" if written >= 0 else "earliest, as nothing was written yet",
            found=str(rebuild.target),
            hint=f"slackwater plan rebuild {stream.full_name}",
        )
    wanted = written if rebuild.target is None else rebuild.target
    known = rebuild.batches.newest_whole(wanted)
    if known is None and wanted <= 0:
        # Killed in its very first batch, before its range was recorded: there is nothing before it to continue after.
        return BEFORE_ALL
    if known is None:
        raise Refused(
            "history-empty",
            f"Neither the checkpoint nor the ledger has the range of any batch up to {wanted} of stream {stream.name}",
            hint="restore the ledger or the checkpoint from a backup; or give the stream a new name and a new output",
        )
    if rebuild.target is not None and known != wanted:
        raise Refused(
            "target-unknown",
            f"The range of batch {wanted} is not recorded",
            expected=f"batch {known} or older",
            hint=f"slackwater plan rebuild {stream.full_name} --at batch:{known}",
        )
    return known


def _check_shown(rebuild: Rebuild, written: int) -> None:
    """A sink that shows nothing although a batch was finished has been moved or emptied."""
    snapshot, history = rebuild.snapshot, rebuild.history
    finished = max([snapshot.marks.committed, snapshot.recorded.shown, *history.commits, *history.written])
    if written < 0 <= finished:
        raise Refused(
            "sink-empty",
            f"The sink of stream {snapshot.stream.name} shows no written batch, but batches were finished",
            where=snapshot.output.location,
            expected=f"batch {finished} in the sink's own log",
            found="no entry",
            hint="put the output back if it was moved or deleted; or process everything again: "
            f"slackwater plan rebuild {snapshot.stream.full_name} --at earliest",
        )


def scope_of(rebuild: Rebuild) -> Scope:
    """Which batches the rebuild reads again. Raises Refused where that is not recorded or cannot be exact."""
    target, batches = target_batch(rebuild), rebuild.batches
    following = target + 1
    pending = following if batches.is_whole(following) else None
    _check_cut(rebuild, target, pending)
    state = state_bounds(rebuild)
    first = first_contributing(batches, target, state, rebuild.code) if target >= 0 else 0
    _check_sources(rebuild, first, target)
    return Scope(target, first, pending, state)


def is_cut(rebuild: Rebuild, target: int, pending: int | None) -> bool:
    """Whether the sink holds batches that it must not hold after the rebuild.

    Of several outputs those may keep batch ``pending`` that have it, if another lacks it: its range stays the same.
    """
    shown = rebuild.snapshot.shown
    return bool(shown) and (rebuild.written > target or max(shown) > (target if pending is None else pending))


def written_text(snapshot: Snapshot) -> str:
    """The newest batch of each output, as a precondition compares it."""
    return ", ".join(str(one.written) for one in snapshot.outputs)


def _check_cut(rebuild: Rebuild, target: int, pending: int | None) -> None:
    """Raises Refused where an output holds batches after the target and cannot remove what they wrote.

    A sink that does not show what it holds gets them a second time where their ranges are not recorded, but only if it
    does not skip them.
    """
    cutting, committed = is_cut(rebuild, target, pending), rebuild.snapshot.known_committed
    for output in rebuild.snapshot.outputs:
        if output.written is not None:
            if cutting and output.written > target and not output.can_cut:
                raise _uncuttable(rebuild, output, target, output.written)
        elif target < committed and (rebuild.target is not None or output.batches_skipped):
            raise _uncuttable(rebuild, output, target, committed)


def _uncuttable(rebuild: Rebuild, output: MemberSeen, target: int, written: int) -> Refused:
    snapshot, stream = rebuild.snapshot, rebuild.snapshot.stream
    later = batch_range(target + 1, written)
    sink = f"its output {output.name}" if snapshot.output.members else "the sink"
    return Refused(
        "sink-uncuttable",
        f"The rebuild would continue after batch {target}, but {sink} cannot remove what {later} wrote"
        if stream.output_mode == "append"
        else f"The rebuild would continue after batch {target}, but in {stream.output_mode} mode {later} replaced rows "
        "of earlier batches, which the sink does not keep",
        where=output.location,
        expected=f"batch {written}, the newest that {sink} holds",
        found=f"batch {target}",
        hint=f"rebuild at the last written batch, which removes nothing: slackwater plan rebuild {stream.full_name}",
    )


def plan_of(rebuild: Rebuild, scope: Scope, cut: Cut, identifier: str, made_at: str) -> Plan:
    """The plan. ``cut`` is what the sink loses after the target batch."""
    snapshot, target = rebuild.snapshot, scope.target
    actions = _actions(rebuild, scope, cut)
    return Plan(
        id=identifier,
        goal="rebuild",
        stream=snapshot.stream.full_name,
        pipeline_file=snapshot.stream.pipeline_file,
        made_at=made_at,
        request=rebuild.request,
        target="earliest" if target == BEFORE_ALL else f"batch:{target}",
        facts=_facts(rebuild, scope),
        preconditions=_preconditions(rebuild, scope, actions),
        actions=actions,
        cost=_cost(rebuild.history, scope, cut),
        risks=risks_of(snapshot, rebuild.query, rebuild.environment, following=target + 1, pending=scope.pending),
        undo=undo_of(actions),
    )


def _actions(rebuild: Rebuild, scope: Scope, cut: Cut) -> tuple[Action, ...]:
    first, target, number = scope.first, scope.target, rebuild.number
    actions: list[Action] = [BuildGeneration(number, _query_id(rebuild, target), first, target, scope.pending)]
    if first <= target:
        actions.append(ReplayBatches(number, first, target, _settings(rebuild.batches, first, target)))
    if scope.pending is not None:
        actions.append(PlanBatch(number, scope.pending))
    actions.append(VerifyGeneration(number, first, target, scope.pending))
    if cut.batches:
        actions.append(CutSink(cut))
    actions.append(SwitchGeneration(rebuild.snapshot.generation.number, number))
    return tuple(actions)


def _settings(batches: BatchHistory, first: int, target: int) -> tuple[ReplaySettings, ...]:
    """The batches in groups that ran under the same settings."""
    groups = groupby(range(first, target + 1), batches.settings)
    spans = [(settings, list(group)) for settings, group in groups]
    return tuple(
        ReplaySettings(group[0], group[-1], None if settings is None else dict(settings)) for settings, group in spans
    )


def _settings_of_note(batches: BatchHistory, scope: Scope) -> tuple[ReplaySettings, ...]:
    """The same without what Spark applies by itself, as the batches pin it."""
    return tuple(
        ReplaySettings(
            group.first,
            group.last,
            {key: value for key, value in (group.settings or {}).items() if key not in batches.pinned(group.first)},
        )
        for group in _settings(batches, scope.first, scope.target)
    )


def check_reproducible(profile: QueryProfile, stream: str) -> None:
    """Raises Refused where the query keeps state that no replay recomputes exactly."""
    for operator in profile.operators:
        if operator in NOT_REPRODUCIBLE:
            raise Refused(
                "state-not-reproducible",
                f"The state of stream {stream} cannot be recomputed exactly: {NOT_REPRODUCIBLE[operator]}",
                expected="windowed aggregations, dropDuplicates, joins",
                found=operator,
                hint="run the query under a new stream name into a new output: it then reads everything from the start",
            )


def state_bounds(rebuild: Rebuild) -> StateBounds:
    """What bounds the state to be recomputed: by the present query where it was read, else by the recorded one."""
    recorded, given = rebuild.snapshot.profile, rebuild.request.retention_ms
    complete = rebuild.snapshot.stream.output_mode == "complete"
    profile = rebuild.query or recorded
    if profile is None:
        retention = None if complete else given
        return StateBounds(stateful=rebuild.snapshot.marks.state is not None, retention_ms=retention, delay_ms=None)
    check_reproducible(profile, rebuild.snapshot.stream.name)
    # The recorded watermarks were made with the recorded delay, whatever the query's delay is now.
    delays = recorded.watermark_delays_ms if recorded is not None else ()
    retention = profile.retention_ms if given is None else given
    return StateBounds(
        stateful=profile.stateful or given is not None,
        # In complete mode Spark drops no key: each batch writes the whole result.
        retention_ms=None if complete else retention,
        delay_ms=delays[0] if len(delays) == 1 else None,
    )


def _check_sources(rebuild: Rebuild, first: int, target: int) -> None:
    """A base before batch ``first`` needs an empty range of each source; batch 0 needs none."""
    if first == 0 or first > target:
        return
    stream = rebuild.snapshot.stream
    for kind, span in rebuild.batches.spans(first, target):
        if span.start is not None and kind.empty_base(span.start) is None:
            raise Refused(
                "source-unsupported",
                f"A rebuild from batch {first} needs an empty range of source {span.source}, and none is known for its "
                f"kind ({kind.kind})",
                expected="a file source or Kafka",
                found=(span.end or "")[:120],
                hint="a rebuild from batch 0 works for any source: "
                + plan_command(stream.full_name, rebuild.request, retention=ALL),
            )


def _query_id(rebuild: Rebuild, target: int) -> str:
    recorded, generation = rebuild.history.metadata, rebuild.snapshot.generation
    if recorded is not None:
        return str(json.loads(recorded)["id"])
    if generation.query_id is not None:
        return generation.query_id
    if target == BEFORE_ALL:
        # Killed before Spark had written its metadata: no id was ever used. The same each time the plan is derived.
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{rebuild.snapshot.stream.id}/{rebuild.number}"))
    raise Refused(
        "query-id-unknown",
        f"The query id of stream {rebuild.snapshot.stream.name} is not recorded",
        where=generation.location,
        hint="restore the file metadata of the checkpoint from a backup",
    )


def _facts(rebuild: Rebuild, scope: Scope) -> Facts:
    snapshot, target = rebuild.snapshot, scope.target
    marks = snapshot.marks
    return Facts(
        planned=marks.planned,
        committed=marks.committed,
        state=marks.state,
        written=marks.written,
        target=target,
        contributing=scope.first,
        pending=scope.pending,
        watermark_ms=rebuild.batches.offset(target).watermark_ms if target >= 0 else 0,
        retention_ms=scope.state.retention_ms,
        delay_ms=scope.state.delay_ms,
        checkpoint_present=snapshot.checkpoint_present,
        ranges_from="checkpoint" if snapshot.checkpoint_present else "ledger",
        notes=notes_of(
            snapshot,
            target=target,
            asked=rebuild.target,
            first=scope.first,
            pending=scope.pending,
            state=scope.state,
            code_differs=_code_differs(rebuild, scope),
            settings=_settings_of_note(rebuild.batches, scope),
        ),
    )


def _code_differs(rebuild: Rebuild, scope: Scope) -> bool:
    """Whether some batch that might contribute ran with code that, as far as is known, reads other rows."""
    runs = rebuild.history.runs
    return scope.state.stateful and not all(rebuild.code.reads_as(runs.get(batch)) for batch in range(scope.target + 1))


def _preconditions(rebuild: Rebuild, scope: Scope, actions: tuple[Action, ...]) -> tuple[Precondition, ...]:
    marks = rebuild.snapshot.marks
    expected: dict[PreconditionName, str] = {
        "generation": str(rebuild.snapshot.generation.number),
        "planned": str(marks.planned),
        "committed": str(marks.committed),
        "written": written_text(rebuild.snapshot),
        "history": rebuild.batches.digest(batches_used(scope.first, scope.target, scope.pending)),
        "pipeline": rebuild.code.digest,
        "source-files": "none",
        "readers": "none",
    }
    needed: dict[str, tuple[PreconditionName, ...]] = {
        "build-generation": (
            "generation", "planned", "committed", "written", "history", "pipeline", "source-files",
        ),
        "cut-sink": ("written", "readers"),
        "switch-generation": ("generation",),
    }  # fmt: skip
    return tuple(
        Precondition(index, name, expected[name])
        for index, action in enumerate(actions)
        for name in needed.get(action.kind, ())
    )


def batches_used(first: int, target: int, pending: int | None) -> range:
    """The batches whose recorded ranges a rebuild copies."""
    return range(max(min(first, target) - 1, 0), (target if pending is None else pending) + 1)


def _cost(history: History, scope: Scope, cut: Cut) -> Cost:
    replayed, recorded = range(scope.first, scope.target + 1), range(scope.target + 1)
    return Cost(
        batches_replayed=len(replayed),
        rows_read_again=_rows(history, replayed),
        batches_uncounted=sum(batch not in history.input_rows for batch in replayed),
        rows_recorded=_rows(history, recorded),
        batches_cut=len(cut.batches),
        files_cut=sum(len(one.files) for one in (cut, *cut.members)),
        bytes_cut=sum(one.bytes for one in (cut, *cut.members)),
    )


def _rows(history: History, batches: range) -> int:
    return sum(history.input_rows.get(batch, 0) for batch in batches)


def ends_after(batches: BatchHistory, target: int) -> dict[str, int]:
    """For each source the last entry of its own log that a generation based at ``target`` inherits (-1: none).

    Sources that inherit all entries are left out.
    """
    if target < 0:
        return dict.fromkeys(batches.history.sources, -1)
    ends = offsets_by_source(batches.offset(target))
    cuts = {source: batches.kind(source, text).cut_entry(text) for source, text in ends.items()}
    return {source: entry for source, entry in cuts.items() if entry is not None}
