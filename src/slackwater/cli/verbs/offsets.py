"""``slackwater offsets``: a position for a manual restart, and its effects."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from slackwater.cli.common.arguments import (
    Format,
    natural_or_none,
    shortened,
)
from slackwater.cli.common.console import err, offset_value, prepare, print_json, write
from slackwater.cli.common.stream_status import next_watermark_ms
from slackwater.core.commands import command
from slackwater.core.errors import Refused, UsageError
from slackwater.core.program import QueryProfile, not_reproducible
from slackwater.core.records import History
from slackwater.core.snapshot import Snapshot
from slackwater.ledger.lease import JVM_WAIT_S, view_of, wait_until_free
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.ledger.workspace import Workspace, open_workspace
from slackwater.operations.gather import gather, refuse_unreadable
from slackwater.operations.goals.rebuild import target_batch
from slackwater.operations.plan.context import PlanContext, bounds_of
from slackwater.operations.plan.contributing import Code, StateBounds, first_contributing
from slackwater.operations.plan.manual_restart import Effect, RestartFacts, SourcePosition, effects_of, position_after
from slackwater.operations.plan.plan import BATCH, LAST_WRITTEN, Request
from slackwater.sources import kind_named

SCHEMA = "slackwater.offsets/1"
MANUAL_RESTART = "a new checkpoint, and a query that starts to read at this position"
OUTPUTS = {"same": "with the same output", "new": "with a new output", "any": "with either"}


@dataclass(frozen=True, slots=True)
class At:
    kind: Literal["last-written", "contributing", "batch"] = "last-written"
    batch: int | None = None

    def __str__(self) -> str:
        return self.kind if self.batch is None else f"batch:{self.batch}"


@dataclass(frozen=True, slots=True)
class PositionFound:
    """A new query would start after ``after``, -1 for the beginning, with these ``effects``."""

    stream: str
    at: At
    after: int
    written: int
    contributing: int | None
    running: bool
    sources: tuple[SourcePosition, ...]
    descriptions: tuple[str, ...]
    effects: tuple[Effect, ...]
    session: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Known:
    batches: BatchHistory
    snapshot: Snapshot

    @property
    def profile(self) -> QueryProfile | None:
        return self.snapshot.profile

    @property
    def written(self) -> int:
        """The sink's newest batch, else the newest committed."""
        return self.snapshot.written_or_committed

    @property
    def newest_written(self) -> int:
        """The newest recorded batch in the sink: a restart must not lose rows that are open then."""
        return max((batch for batch in self.batches.batches if batch <= self.written), default=-1)

    @property
    def watermark_ms(self) -> int:
        """The watermark after the newest written batch, as far as it is recorded."""
        newest = self.newest_written
        if newest < 0:
            return 0
        planned = self.batches.offset(newest + 1) if newest + 1 in self.batches.batches else None
        return next_watermark_ms(planned, self.batches.offset(newest), self.batches.commit(newest))

    @property
    def not_reproducible(self) -> str | None:
        """Why state cannot be recomputed by reading again."""
        found = not_reproducible(self.profile) if self.profile else None
        return found[1] if found else None

    @property
    def state(self) -> StateBounds:
        if self.profile is None:
            return StateBounds(self.snapshot.marks.state is not None, None, None)
        return bounds_of(self.profile, self.profile, self.snapshot.stream.output_mode)


def position_of(workspace: Workspace, name: str, at: At, say: Callable[[str], None]) -> PositionFound:
    """Raises NotFound, DataError for an unreadable output, Refused if it lacks the requested batch."""
    ledger = workspace.ledger
    stream = ledger.find_stream(name)
    running = view_of(ledger.lease(stream.full_name), ledger.now_ms()).state == "held"
    if not running:
        # The JVM of a killed driver may commit one more batch.
        wait_until_free(ledger, stream.full_name, wait_s=JVM_WAIT_S, say=say)
    facts = gather(workspace, stream, depth="quick")
    snapshot, history = facts.snapshot, facts.history
    refuse_unreadable(snapshot)
    known = _Known(BatchHistory(history), snapshot)
    request = Request.at("rebuild", LAST_WRITTEN if at.batch is None else f"{BATCH}{at.batch}")
    # The code that ran: what it read is what a restart would have to read again.
    code = _code_of(history)
    target = target_batch(PlanContext(facts, request))
    contributing = _contributing(known, at, code)
    after = contributing - 1 if at.kind == "contributing" and contributing is not None else target
    sources = position_after(known.batches, after)
    return PositionFound(
        stream=stream.full_name,
        at=at,
        after=after,
        written=known.written,
        contributing=contributing,
        running=running,
        sources=sources,
        descriptions=snapshot.profile.sources if snapshot.profile else (),
        effects=effects_of(_restart_facts(known, after, contributing, sources)),
        session=stream.session,
    )


def _code_of(history: History) -> Code:
    if not history.runs:
        return Code("")
    run = history.runs[max(history.runs)]
    return Code(run.code or "", run.rows_digest, run.spark_version)


def _contributing(known: _Known, at: At, code: Code) -> int | None:
    if known.newest_written < 0:
        return 0
    try:
        return first_contributing(known.batches, known.newest_written, known.state, code)
    except Refused:
        if at.kind == "contributing":
            raise
        return None


def _restart_facts(
    known: _Known, after: int, contributing: int | None, sources: tuple[SourcePosition, ...]
) -> RestartFacts:
    return RestartFacts(
        written=known.written,
        after=after,
        contributing=contributing,
        stateful=known.state.stateful,
        source_kinds=tuple(source.kind for source in sources),
        input_rows=known.batches.history.input_rows,
        watermark_ms=known.watermark_ms,
        not_reproducible=known.not_reproducible,
        batches_skipped=known.snapshot.output.batches_skipped,
    )


def offsets_document(position: PositionFound) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "stream": position.stream,
        "at": str(position.at),
        "after_batch": position.after,
        "written": position.written,
        "contributing": position.contributing,
        "running": position.running,
        "sources": [_source_fields(position, index) for index in range(len(position.sources))],
        "manual_restart": {
            "what": MANUAL_RESTART,
            "effects": [
                {
                    "output": effect.output,
                    "risk": effect.risk,
                    "text": effect.text,
                    "batches": list(effect.batches) if effect.batches else None,
                    "rows": effect.rows,
                }
                for effect in position.effects
            ],
            "instead": instead_of(position),
        },
    }


def instead_of(position: PositionFound) -> str:
    return command("plan", "rebuild", position.stream, *position.session)


def _source_fields(at: PositionFound, index: int) -> dict[str, Any]:
    source = at.sources[index]
    described = at.descriptions[index] if index < len(at.descriptions) else None
    fields: dict[str, Any] = {"source": source.source, "kind": source.kind, "description": described}
    position = kind_named(source.kind).restart_fields(source.offset, source.files_read, source.files_to_come)
    return fields | dict(position)


def offset_lines(position: PositionFound) -> list[str]:
    """A document for each source: Kafka's ``startingOffsets``, else Spark's string."""
    return [json.dumps(offset_value(source.offset)) for source in position.sources]


def messages(position: PositionFound) -> list[str]:
    where = f"after batch {position.after}" if position.after >= 0 else "before batch 0, where the stream started"
    lines = [f"{position.stream}, {position.at}: {where}"]
    if position.running:
        lines.append("the stream is running: its position is moving")
    for source in position.sources:
        lines += _source_messages(source)
    lines.append(f"a manual restart ({MANUAL_RESTART}) would do this:")
    lines += [f"  {OUTPUTS[effect.output]}, {effect.risk}: {effect.text}" for effect in position.effects]
    lines.append(f"instead, without loss: {instead_of(position)}")
    return lines


def _source_messages(source: SourcePosition) -> list[str]:
    if source.files_read is None and not source.files_to_come:
        return []
    read = "an unknown number of" if source.files_read is None else f"{source.files_read:,}"
    lines = [f"source {source.source} is a file source: {read} files are before this position"]
    if source.files_to_come:
        lines.append(f"the first one after it is {source.files_to_come[0].path}")
    return lines


def offsets(*, stream: str, at: str, home: str | None, shown_as: Format) -> int:
    settings = prepare(home, shown_as)
    wanted = parse_at(at)
    with open_workspace(settings) as workspace:
        position = position_of(workspace, stream, wanted, lambda text: err().print(text))
    if shown_as is Format.JSON:
        print_json(offsets_document(position))
        return 0
    for line in messages(position):
        err().print(line, soft_wrap=True)
    for line in offset_lines(position):
        write(f"{line}\n")
    return 0


def parse_at(text: str) -> At:
    """``last-written``, ``contributing`` or ``batch:N``. Raises UsageError."""
    if text == "last-written":
        return At("last-written")
    if text == "contributing":
        return At("contributing")
    number = natural_or_none(text.removeprefix("batch:")) if text.startswith("batch:") else None
    if number is not None:
        return At("batch", number)
    raise UsageError(
        "target",
        "A position cannot be parsed",
        expected="last-written, contributing or batch:N",
        found=shortened(text),
    )
