"""Use case: plan a rebuild. Reads, compares, and changes nothing but the ledger's copy of what it read."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from slackwater.app.stream_facts import facts_of, history_of, missing_files, profile_of, readers_of, reconcile
from slackwater.app.workspace import Workspace
from slackwater.errors import Refused
from slackwater.lease.lease import wait_until_free
from slackwater.model.plan import BuildGeneration, CutSink, Plan
from slackwater.model.records import GenerationRecord, StreamRecord
from slackwater.model.sink import Cut
from slackwater.plan.past import Past
from slackwater.plan.rebuild import Situation, rebuild, source_files_needed, target_batch
from slackwater.runtime.loader import digest
from slackwater.sinks.registry import open_output

JVM_WAIT_S = 60.0
SHOWN_FILES = 3


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    """``batch`` ``None`` means the last written one; ``retention_ms`` overrides how far back rows count."""

    batch: int | None = None
    retention_ms: int | None = None
    pipeline_file: str | None = None


def plan_rebuild(workspace: Workspace, name: str, options: RebuildOptions, say: Callable[[str], None]) -> Plan:
    """The plan for one stream. Raises Refused where no exact and safe way exists, NotFound for an unknown stream."""
    stream = workspace.ledger.find_stream(name)
    wait_until_free(workspace.ledger, stream.full_name, wait_s=JVM_WAIT_S, say=say)
    _refuse_unfinished(workspace, stream)
    reconcile(workspace, stream)
    situation = _situation(workspace, stream, options)
    cut = _cut(workspace, situation)
    made_at = datetime.now(UTC)
    identifier = f"{made_at:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    plan = rebuild(situation, cut, identifier, made_at.isoformat(timespec="seconds"))
    _refuse_missing_files(situation, plan)
    return plan


def _situation(workspace: Workspace, stream: StreamRecord, options: RebuildOptions) -> Situation:
    facts = facts_of(workspace, stream)
    reference = options.pipeline_file or stream.pipeline_file
    number = max(generation.number for generation in workspace.ledger.generations(stream.full_name)) + 1
    location = workspace.home.checkpoint(stream.pipeline, stream.name, number)
    return Situation(
        stream=_with_file(stream, reference),
        generation=facts.generation,
        next_generation=GenerationRecord(stream.full_name, number, str(location)),
        marks=facts.marks,
        history=history_of(workspace, stream),
        profile=profile_of(facts.generation),
        pipeline_digest=digest(reference),
        checkpoint_present=facts.checkpoint_present,
        shown_before=max((mark.written for mark in workspace.ledger.sink_marks(stream.full_name)), default=-1),
        target=options.batch,
        retention_ms=options.retention_ms,
    )


def _with_file(stream: StreamRecord, reference: str) -> StreamRecord:
    return StreamRecord(
        stream.pipeline, stream.name, stream.sink, stream.output_mode, reference, stream.current_generation
    )


def _cut(workspace: Workspace, situation: Situation) -> Cut:
    """What lies in the sink after the target. Raises Refused where another stream has read it already."""
    output = open_output(situation.stream.sink)
    cut = output.cut_after(target_batch(situation), situation.history.written)
    readers = readers_of(workspace, situation.stream, cut.files)
    if readers:
        raise Refused(
            "cut-was-read",
            f"The sink would have to be cut back to batch {cut.after}, but other streams have read what would be cut",
            where=output.location,
            found=", ".join(readers),
            hint="rebuild at a batch that the readers have not passed, or reset the readers, too",
        )
    return cut


def _refuse_unfinished(workspace: Workspace, stream: StreamRecord) -> None:
    left = workspace.ledger.open_operation(stream.full_name)
    if left is not None:
        raise Refused(
            "operation-unfinished",
            f"Operation {left.id} on stream {stream.name} was interrupted and must be carried to its end first",
            hint=f"slackwater apply {left.summary} --yes",
        )


def _refuse_missing_files(situation: Situation, plan: Plan) -> None:
    built = next(action for action in plan.actions if isinstance(action, BuildGeneration))
    missing = missing_files(source_files_needed(Past(situation.history), built.first, built.last))
    if missing:
        more = f" and {len(missing) - SHOWN_FILES} more" if len(missing) > SHOWN_FILES else ""
        raise Refused(
            "source-files-gone",
            f"The source no longer has {len(missing)} files that batches {built.first}..{built.last} have read",
            found=", ".join(missing[:SHOWN_FILES]) + more,
            hint="restore the files; or reset the stream and accept the loss",
        )


def cut_of(plan: Plan) -> CutSink | None:
    """The plan's cut of the sink, if it has one."""
    return next((action for action in plan.actions if isinstance(action, CutSink)), None)
