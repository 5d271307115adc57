"""``slackwater offsets``: a position for a manual restart, and its effects."""

import json
from dataclasses import dataclass

from slackwater.cli.common.arguments import Format, natural_or_none, shortened
from slackwater.cli.common.console import Document, copied, offset_value, prepare, print_json, say, write
from slackwater.cli.common.stream_status import next_watermark_ms
from slackwater.core.commands import command
from slackwater.core.errors import Refused, UsageError
from slackwater.core.program import not_reproducible
from slackwater.ledger.lease import JVM_WAIT_S, view_of, wait_until_free
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.ledger.sqlite import Say
from slackwater.ledger.workspace import Workspace, open_workspace
from slackwater.operations.gather import gather, refuse_unreadable
from slackwater.operations.goals.rebuild import target_batch
from slackwater.operations.plan.context import PlanContext, bounds_of
from slackwater.operations.plan.contributing import Code, StateBounds, first_contributing
from slackwater.operations.plan.manual_restart import Effect, RestartFacts, SourcePosition, effects_of, position_after
from slackwater.operations.plan.plan import BATCH, LAST_WRITTEN, Request
from slackwater.sources import kind_named

SCHEMA = "slackwater.offsets/1"
CONTRIBUTING = "contributing"
MANUAL_RESTART = "a new checkpoint, and a query that starts to read at this position"
RISK_WIDTH = 11
OUTPUTS = {"same": "with the same output", "new": "with a new output", "any": "with either"}


@dataclass(frozen=True, slots=True)
class PositionFound:
    """A new query would start after ``after``, -1 for the beginning, with these ``effects``."""

    stream: str
    at: str
    after: int
    written: int
    contributing: int | None
    running: bool
    sources: tuple[SourcePosition, ...]
    descriptions: tuple[str, ...]
    effects: tuple[Effect, ...]
    session: tuple[str, ...] = ()


def position_of(workspace: Workspace, name: str, at: str, say: Say) -> PositionFound:
    """Raises NotFound, DataError for an unreadable output, Refused if it lacks the requested batch."""
    ledger = workspace.ledger
    stream = ledger.find_stream(name)
    running = view_of(ledger, stream.full_name).state == "held"
    if not running:
        # The JVM of a killed driver may commit one more batch.
        wait_until_free(ledger, stream.full_name, wait_s=JVM_WAIT_S, say=say)
    facts = gather(workspace, stream, depth="quick")
    snapshot, history = facts.snapshot, facts.history
    refuse_unreadable(snapshot)
    batches, profile, written = BatchHistory(history), snapshot.profile, snapshot.written_or_committed
    # A restart must not lose rows that are open after the newest recorded batch in the sink.
    newest = max((batch for batch in batches.batches if batch <= written), default=-1)
    state = StateBounds(snapshot.marks.state is not None, None, None)
    if profile is not None:
        state = bounds_of(profile, profile, snapshot.stream.output_mode)
    request = Request.at("rebuild", at if at.startswith(BATCH) else LAST_WRITTEN)
    after = target_batch(PlanContext(facts, request))
    contributing: int | None = 0
    try:
        if newest >= 0:
            # The code that ran: a restart would have to read the same values again.
            ran = history.runs[max(history.runs)] if history.runs else None
            code = Code("") if ran is None else Code(ran.code or "", ran.rows_digest, ran.spark_version)
            contributing = first_contributing(batches, newest, state, code)
    except Refused:
        if at == CONTRIBUTING:
            raise
        contributing = None
    if at == CONTRIBUTING and contributing is not None:
        after = contributing - 1
    sources = position_after(batches, after)
    # The watermark after the newest written batch, as far as it is recorded.
    watermark_ms = 0
    if newest >= 0:
        planned = batches.offset(newest + 1) if newest + 1 in batches.batches else None
        watermark_ms = next_watermark_ms(planned, batches.offset(newest), batches.commit(newest))
    unreproducible = not_reproducible(profile) if profile else None
    restart = RestartFacts(
        written=written,
        after=after,
        contributing=contributing,
        stateful=state.stateful,
        source_kinds=tuple(source.kind for source in sources),
        input_rows=history.input_rows,
        watermark_ms=watermark_ms,
        not_reproducible=unreproducible[1] if unreproducible else None,
        batches_skipped=snapshot.output.batches_skipped,
    )
    return PositionFound(
        stream=stream.full_name,
        at=at,
        after=after,
        written=written,
        contributing=contributing,
        running=running,
        sources=sources,
        descriptions=profile.sources if profile else (),
        effects=effects_of(restart),
        session=stream.session,
    )


def offsets_document(position: PositionFound) -> Document:
    sources = []
    for index, source in enumerate(position.sources):
        described = position.descriptions[index] if index < len(position.descriptions) else None
        restart = kind_named(source.kind).restart_fields(source.offset, source.files_read, source.files_to_come)
        sources.append({"source": source.source, "kind": source.kind, "description": described} | dict(restart))
    return {
        "schema": SCHEMA,
        **copied(position, "stream", "at", after_batch="after"),
        **copied(position, "written", "contributing", "running"),
        "sources": sources,
        "manual_restart": {
            "what": MANUAL_RESTART,
            "effects": [
                copied(effect, "output", "risk", "text")
                | {"batches": list(effect.batches) if effect.batches else None, "rows": effect.rows}
                for effect in position.effects
            ],
            "instead": instead_of(position),
        },
    }


def instead_of(position: PositionFound) -> str:
    return command("plan", "rebuild", position.stream, *position.session)


def messages(position: PositionFound) -> list[str]:
    where = f"after batch {position.after}" if position.after >= 0 else "before batch 0, where the stream started"
    lines = [f"{position.stream}, {position.at}: {where}"]
    if position.running:
        lines.append("the stream is running: its position is moving")
    for source in position.sources:
        if source.files_read is None and not source.files_to_come:
            continue
        read = "unknown" if source.files_read is None else f"{source.files_read:,}"
        lines.append(f"source {source.source} is a file source; files before this position: {read}")
        if source.files_to_come:
            lines.append(f"the first file after it is {source.files_to_come[0].path}")
    lines.append(f"a manual restart ({MANUAL_RESTART}) would do this:")
    lines += [f"  {effect.risk:<{RISK_WIDTH}}{OUTPUTS[effect.output]}: {effect.text}" for effect in position.effects]
    lines.append(f"instead, without loss: {instead_of(position)}")
    return lines


def offsets(*, stream: str, at: str, home: str | None, shown_as: Format) -> int:
    settings = prepare(home, shown_as)
    wanted = parse_at(at)
    with open_workspace(settings) as workspace:
        position = position_of(workspace, stream, wanted, say)
    if shown_as is Format.JSON:
        print_json(offsets_document(position))
        return 0
    for line in messages(position):
        say(line)
    # Kafka's ``startingOffsets``, else Spark's string.
    write("".join(f"{json.dumps(offset_value(source.offset))}\n" for source in position.sources))
    return 0


def parse_at(text: str) -> str:
    """``last-written``, ``contributing`` or ``batch:N``. Raises UsageError."""
    if text in {LAST_WRITTEN, CONTRIBUTING}:
        return text
    number = natural_or_none(text.removeprefix(BATCH)) if text.startswith(BATCH) else None
    if number is not None:
        return f"{BATCH}{number}"
    raise UsageError(
        "target", "A position cannot be parsed", expected="last-written, contributing or batch:N", found=shortened(text)
    )
