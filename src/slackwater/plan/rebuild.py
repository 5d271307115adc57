"""Builds the plan of a rebuild: go on from the last written batch, with state made anew from the contributing ones."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Literal

from slackwater.errors import Refused
from slackwater.model.history import History
from slackwater.model.marks import Marks
from slackwater.model.plan import (
    Action,
    BuildGeneration,
    Cost,
    CutSink,
    Facts,
    Plan,
    Precondition,
    ReplayBatches,
    SwitchGeneration,
    VerifyGeneration,
)
from slackwater.model.profile import QueryProfile
from slackwater.model.records import GenerationRecord, StreamRecord
from slackwater.model.sink import Cut
from slackwater.plan.contributing import StatePast, first_contributing
from slackwater.plan.past import Past, is_kafka_offset, log_offset, offsets_by_source

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


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a rebuild is planned from. ``target`` is the batch asked for, ``None`` for the last written one.

    ``shown_before`` is the newest batch that the sink was ever seen to show, -1 for none.
    """

    stream: StreamRecord
    generation: GenerationRecord
    next_generation: GenerationRecord
    marks: Marks
    history: History
    profile: QueryProfile | None
    pipeline_digest: str
    checkpoint_present: bool
    shown_before: int = -1
    target: int | None = None
    retention_ms: int | None = None


BEFORE_ALL = -1
"""The target of a rebuild of a stream that has written nothing yet: begin where it began, at batch 0."""


def target_batch(situation: Situation) -> int:
    """The batch to go on from: the one asked for, else the last written one, else the newest whose range is known.

    ``BEFORE_ALL`` where nothing was ever written. Raises Refused where the sink shows nothing though something was, or
    less than what was asked for.
    """
    written = BEFORE_ALL if situation.marks.written is None else situation.marks.written
    _check_shown(situation, written)
    if situation.target is not None and situation.target > written:
        raise Refused(
            "target-unwritten",
            f"The sink of stream {situation.stream.name} does not hold batch {situation.target} yet",
            expected=f"a batch from 0 to {written}",
            found=str(situation.target),
        )
    wanted = written if situation.target is None else situation.target
    known = newest_known(Past(situation.history), wanted)
    if known is None and wanted <= 0:
        # Killed in its very first batch, before anybody saw its range: there is nothing before it to go on from.
        return BEFORE_ALL
    if known is None:
        raise Refused(
            "history-empty",
            f"Neither the checkpoint nor the ledger knows the range of any batch up to {wanted} "
            f"of stream {situation.stream.name}",
            hint="only a reset can begin again from here",
        )
    if situation.target is not None and known != wanted:
        raise Refused(
            "target-unknown", f"The range of batch {wanted} is recorded nowhere", expected=f"batch {known} or older"
        )
    return known


def _check_shown(situation: Situation, written: int) -> None:
    """A sink that shows nothing although a batch was finished has been moved or emptied."""
    history = situation.history
    finished = max([situation.marks.committed, situation.shown_before, *history.commits, *history.written])
    if written < 0 <= finished:
        raise Refused(
            "sink-empty",
            f"The sink of stream {situation.stream.name} shows no written batch, yet batches were finished",
            where=situation.stream.sink.get("path"),
            expected=f"batch {finished} in its output",
            found="no entry",
            hint="if the output was moved or deleted, put it back; nothing was changed",
        )


def newest_known(past: Past, last: int) -> int | None:
    """The newest batch up to ``last`` whose range is recorded wholly, source files included."""
    for batch in reversed(past.batches):
        if batch <= last and not past.missing_source_entries(batch):
            return batch
    return None


def rebuild(situation: Situation, cut: Cut, identifier: str, made_at: str) -> Plan:
    """The plan. ``cut`` is what the sink loses after the target batch. Raises Refused where no exact way exists."""
    past, target = Past(situation.history), target_batch(situation)
    state = _state_past(situation)
    first = first_contributing(past, target, state) if target >= 0 else 0
    _check_sources(past, first, target)
    stream, new = situation.stream, situation.next_generation
    actions: list[Action] = [
        BuildGeneration(new.number, new.location, _query_id(situation, target), first, target),
        *([ReplayBatches(first, target)] if first <= target else []),
        VerifyGeneration(target),
        *([CutSink(cut.after, cut.batches, cut.files, cut.bytes)] if cut.batches else []),
        SwitchGeneration(situation.generation.number, new.number),
    ]
    return Plan(
        id=identifier,
        goal="rebuild",
        stream=stream.full_name,
        pipeline_file=stream.pipeline_file,
        made_at=made_at,
        target="last-written" if situation.target is None else f"batch:{target}",
        facts=_facts(situation, past, first, target, state),
        preconditions=_preconditions(situation, past, first, target, cut),
        actions=tuple(actions),
        cost=_cost(situation.history, first, target, cut),
        irreversible=(),
        undo=_undo(situation, cut),
    )


def source_files_needed(past: Past, first: int, target: int) -> list[str]:
    """Paths of the source files that a replay of batches ``first`` to ``target`` reads."""
    if first > target:
        return []
    starts = offsets_by_source(past.offset(first - 1)) if first > 0 else {}
    paths: list[str] = []
    for source, end in offsets_by_source(past.offset(target)).items():
        last = log_offset(end)
        if last is not None:
            start = log_offset(starts.get(source))
            paths += [file.path for file in past.source_files(source, (-1 if start is None else start) + 1, last)]
    return paths


def check_reproducible(profile: QueryProfile, stream: str) -> None:
    """Raises Refused where the query keeps state that no replay makes anew exactly."""
    for operator in profile.operators:
        if operator in NOT_REPRODUCIBLE:
            raise Refused(
                "state-not-reproducible",
                f"The state of stream {stream} cannot be made anew exactly: {NOT_REPRODUCIBLE[operator]}",
                expected="windowed aggregations, dropDuplicates, joins",
                found=operator,
                hint="reset the stream, or replay it into a new output",
            )


def _state_past(situation: Situation) -> StatePast:
    """What the recorded query kept; a retention that the user gives speaks of the query as it is now."""
    profile, given = situation.profile, situation.retention_ms
    if profile is None:
        return StatePast(stateful=situation.marks.state is not None, retention_ms=given, delay_ms=None)
    check_reproducible(profile, situation.stream.name)
    delays = profile.watermark_delays_ms
    return StatePast(
        stateful=profile.stateful or given is not None,
        retention_ms=profile.retention_ms if given is None else given,
        # The recorded watermarks were made with the recorded delay, whatever the query's delay is now.
        delay_ms=delays[0] if len(delays) == 1 else None,
    )


def _check_sources(past: Past, first: int, target: int) -> None:
    """A base before batch ``first`` needs an empty range of each source; batch 0 needs none."""
    if first == 0 or first > target:
        return
    for source, text in offsets_by_source(past.offset(target)).items():
        if text is not None and log_offset(text) is None and not is_kafka_offset(text):
            raise Refused(
                "source-unsupported",
                f"A rebuild from batch {first} needs an empty range of source {source}, whose offsets are unknown",
                expected="a file source or Kafka",
                found=text[:120],
                hint="a rebuild from batch 0 works for any source: give --retention longer than the stream's life",
            )


def _query_id(situation: Situation, target: int) -> str:
    from_metadata = situation.history.metadata
    if from_metadata is not None:
        return str(json.loads(from_metadata)["id"])
    if situation.generation.query_id is None and target == BEFORE_ALL:
        # Killed before Spark had written its metadata: nobody has seen an id, so any will do.
        return str(uuid.uuid4())
    if situation.generation.query_id is None:
        raise Refused("query-id-unknown", f"The query id of stream {situation.stream.name} is recorded nowhere")
    return situation.generation.query_id


def _facts(situation: Situation, past: Past, first: int, target: int, state: StatePast) -> Facts:
    marks = situation.marks
    ranges: Literal["checkpoint", "ledger"] = "checkpoint" if situation.checkpoint_present else "ledger"
    written = -1 if marks.written is None else marks.written
    return Facts(
        planned=marks.planned,
        committed=marks.committed,
        state=marks.state,
        written=written,
        target=target,
        contributing=first,
        watermark_ms=past.offset(target).watermark_ms if target >= 0 else 0,
        retention_ms=state.retention_ms,
        delay_ms=state.delay_ms,
        checkpoint_present=situation.checkpoint_present,
        ranges_from=ranges,
        notes=tuple(_notes(situation, first, target, state)),
    )


def _notes(situation: Situation, first: int, target: int, state: StatePast) -> list[str]:
    marks, written = situation.marks, -1 if situation.marks.written is None else situation.marks.written
    notes: list[str] = []
    if not situation.checkpoint_present:
        notes.append("the checkpoint is gone; the ranges come from the ledger")
    if situation.target is None and written > target:
        unknown = batch_range(target + 1, written)
        notes.append(f"the sink holds {unknown}, of which nobody recorded the range: it is cut back to {target}")
    if marks.planned > target:
        notes.append(f"{batch_range(target + 1, marks.planned)} was planned beyond that and is made again")
    if target < 0:
        notes.append("nothing was written yet: the stream begins again at batch 0, where it began")
        return notes
    if state.stateful and state.retention_ms is None:
        notes.append("how long rows matter cannot be told from the query: everything from batch 0 is replayed")
    if first > target:
        notes.append("the query keeps no state: nothing is read again")
    return notes


def batch_range(first: int, last: int) -> str:
    """``batch 7``, or ``batches 7..9``."""
    return f"batch {first}" if first == last else f"batches {first}..{last}"


def _preconditions(situation: Situation, past: Past, first: int, target: int, cut: Cut) -> tuple[Precondition, ...]:
    marks = situation.marks
    facts = {
        "writer": "none",
        "generation": str(situation.generation.number),
        "planned": str(marks.planned),
        "committed": str(marks.committed),
        "written": str(marks.written),
        "history": past.digest(max(min(first, target) - 1, 0), target),
        "pipeline": situation.pipeline_digest,
        "source-files": "none",
        **({"readers": "none"} if cut.batches else {}),
    }
    return tuple(Precondition(name, expected) for name, expected in facts.items())


def _cost(history: History, first: int, target: int, cut: Cut) -> Cost:
    replayed, recorded = range(first, target + 1), range(target + 1)
    return Cost(
        batches_replayed=len(replayed),
        rows_read_again=_rows(history, replayed),
        batches_uncounted=sum(batch not in history.input_rows for batch in replayed),
        rows_recorded=_rows(history, recorded),
        batches_cut=len(cut.batches),
        files_cut=len(cut.files),
        bytes_cut=cut.bytes,
    )


def _rows(history: History, batches: range) -> int:
    return sum(history.input_rows.get(batch, 0) for batch in batches)


def _undo(situation: Situation, cut: Cut) -> tuple[str, ...]:
    old = situation.generation
    steps = [f"generation {old.number} stays at {old.location}"]
    if cut.batches:
        steps.append("what is cut from the sink is kept in the operation's backup folder")
    return tuple(steps)
