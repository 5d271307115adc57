"""The document of a stream: its facts and diagnosis as ``doctor`` has them, and its ledger records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from slackwater import __version__
from slackwater.checkpoint.layout import COMMITS, OFFSETS
from slackwater.cli.common.console import offset_value
from slackwater.cli.verbs.evidence import model
from slackwater.core.checkpoint import BatchLine, CheckpointReport, Damage, OperatorLine, StateInventory
from slackwater.core.commands import command
from slackwater.core.errors import SlackwaterError
from slackwater.core.facts import CheckpointSeen, Facts, SinkFacts, SourceFacts, Unknown
from slackwater.core.finding import Severity
from slackwater.core.marks import Marks
from slackwater.core.records import NEWEST_BATCHES, BatchRecord, OperationRecord, RunRecord
from slackwater.diagnose.causes import ExplainedError
from slackwater.diagnose.checks.common.check import Diagnosed
from slackwater.diagnose.doctor import Diagnosis, documented

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


from slackwater.cli.common.examine import Examined
from slackwater.core.facts import HistoryFacts
from slackwater.core.records import StreamRecord
from slackwater.core.settings import Settings
from slackwater.diagnose.doctor import diagnose
from slackwater.ledger.home import Home
from slackwater.ledger.lease import end_of, view_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.workspace import open_workspace

REFUSED = "refused"
_Kind = TypeVar("_Kind", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class LedgerRecords:
    """The ledger's records; ``runs`` and ``operations`` are oldest first. ``holder``: who may write now."""

    stream: StreamRecord
    place: str
    runs: tuple[RunRecord, ...]
    operations: tuple[OperationRecord, ...]
    batches: tuple[BatchRecord, ...]
    holder: str | None


def make_evidence(
    settings: Settings, examined: Examined, problem: SlackwaterError | None, made_ms: int, *, messages: bool
) -> model.Evidence:
    """The document, with secrets hidden. ``messages`` keeps the error messages of runs."""
    if not messages:
        examined = _without_messages(examined)
    records = _recorded(settings, examined, problem)
    facts, diagnosis = examined.facts, examined.diagnosis
    recorded = records if isinstance(records, LedgerRecords) else None
    batches = _batches(facts, recorded)
    made = model.Evidence(
        schema=model.SCHEMA,
        slackwater=__version__,
        made_ms=made_ms,
        head=_head(examined, problem or examined.error, messages=messages),
        stream=_stream(examined.name, recorded, settings),
        checkpoint=_checkpoint(facts.checkpoint.report, facts.checkpoint.damage) if facts is not None else None,
        marks=_marks(facts.marks) if facts is not None else None,
        lanes=_lanes(facts, [batch.batch_id for batch in recorded.batches] if recorded else None),
        batches=batches,
        sources=tuple(_source(one, recorded) for one in facts.sources) if facts is not None else (),
        operators=tuple(map(_operator, facts.checkpoint.report.operators)) if facts is not None else (),
        sink=_sink(facts, facts.sink) if facts is not None and isinstance(facts.sink, SinkFacts) else None,
        runs=tuple(_run(run, messages=messages) for run in reversed(recorded.runs)) if recorded else (),
        operations=tuple(_operation(one, messages=messages) for one in reversed(recorded.operations))
        if recorded
        else (),
        findings=tuple(map(_finding, diagnosis.found)) if diagnosis is not None else (),
        errors=tuple(map(_error, examined.errors)),
        not_checked=tuple(diagnosis.not_checked) if diagnosis is not None else (),
        unknown=tuple(_unknown(examined, records)),
        code_compared=facts is not None and facts.code is not None and not isinstance(facts.code, Unknown),
    )
    evidence: model.Evidence = model.redacted(made)
    return evidence


def _copied(kind: type[_Kind], source: object, **others: object) -> _Kind:
    """Copies only fields of the document."""
    names = (field.name for field in fields(kind) if field.name not in others)
    return kind(**{name: getattr(source, name) for name in names}, **others)


def _head(examined: Examined, problem: SlackwaterError | None, *, messages: bool) -> model.Head:
    diagnosis = examined.diagnosis
    missed = len(diagnosis.not_checked) if diagnosis is not None else 0
    problems = diagnosis.problems if diagnosis is not None else ()
    if problem is not None and not any(one.finding.severity is Severity.STOP for one in problems):
        # What an error has found can be a text of a driver or of a library, or a value that is stored.
        head = _head_of_error(problem, examined.name, len(problems), missed)
        return head if messages else replace(head, found=None)
    if problems:
        return _head_of(problems[0], len(problems) - 1, missed)
    if missed or (diagnosis is not None and diagnosis.unread is not None):
        text = "nothing was found, but not everything could be checked"
        return model.Head("not-checked", "not-checked", text, not_checked=missed)
    return _healthy(diagnosis)


def _head_of_error(problem: SlackwaterError, name: str, others: int, missed: int) -> model.Head:
    lost = problem.code == "ledger-lost"
    return model.Head(
        state="stop",
        code=problem.code,
        text=problem.message,
        risk="stuck",
        certainty="certain",
        goal="resume" if lost else None,
        next=command("plan", "resume", name) if lost else None,
        advice=None if lost else problem.hint,
        where=problem.where,
        expected=problem.expected,
        found=problem.found,
        others=others,
        not_checked=missed,
    )


def _head_of(worst: Diagnosed, others: int, missed: int) -> model.Head:
    finding = worst.finding
    return _copied(
        model.Head,
        finding,
        state="stop" if finding.severity is Severity.STOP else "warning",
        certainty=worst.certainty,
        at_stake=worst.at_stake,
        others=others,
        not_checked=missed,
    )


def _healthy(diagnosis: Diagnosis | None) -> model.Head:
    first = diagnosis.found[0].finding if diagnosis is not None and diagnosis.found else None
    if first is None:
        return model.Head("healthy", "healthy", "nothing is wrong")
    return model.Head("healthy", first.code, first.text, goal=first.goal, next=first.next, advice=first.advice)


def _stream(name: str, recorded: LedgerRecords | None, settings: Settings) -> model.Stream:
    if recorded is None:
        return model.Stream(name, recorded=False)
    stream = recorded.stream
    return model.Stream(
        name=name,
        recorded=True,
        pipeline_file=stream.pipeline_file or None,
        output_mode=stream.output_mode,
        generation=stream.current_generation,
        home=str(Home(settings.home).location),
        ledger=recorded.place,
        holder=recorded.holder,
    )


def _checkpoint(report: CheckpointReport, damage: Iterable[Damage]) -> model.Checkpoint:
    return _copied(
        model.Checkpoint,
        report,
        spark_at_least=report.spark_version.at_least,
        spark_evidence=report.spark_version.evidence,
        files=report.files.count,
        bytes=report.files.bytes,
        settings=model.shown_settings(report.settings),
        damage=tuple(damage),
    )


def _marks(marks: Marks) -> model.MarksEntry:
    return _copied(model.MarksEntry, marks, next_planned=marks.next_is_planned)


def _batches(facts: Facts | None, recorded: LedgerRecords | None) -> tuple[model.Batch, ...]:
    lines = {line.id: line for line in facts.checkpoint.report.batches} if facts is not None else {}
    records = {record.batch_id: record for record in recorded.batches} if recorded is not None else {}
    written = facts.marks.written if facts is not None else None
    known = {*lines, *records}
    if written is not None:
        # Those that a checkpoint from a backup lacks.
        known.update(range(max([-1, written - NEWEST_BATCHES, *known]) + 1, written + 1))
    return tuple(_batch(batch, lines.get(batch), records.get(batch), written) for batch in sorted(known))


def _batch(batch: int, line: BatchLine | None, record: BatchRecord | None, written: int | None) -> model.Batch:
    progress: Mapping[str, Any] = {}
    if record is not None:
        progress = {
            "run": record.run,
            "input_rows": record.input_rows,
            "output_rows": record.output_rows,
            "late_rows": record.late_rows,
            "state_rows": record.state_rows,
            "event_time_min_ms": record.event_time_min_ms,
            "event_time_max_ms": record.event_time_max_ms,
            "duration_ms": record.durations_ms.get("triggerExecution"),
        }
    planned_ms = line.timestamp_ms if line is not None else None
    watermark_ms = line.watermark_ms if line is not None else None
    return model.Batch(
        batch=batch,
        planned=line is not None and line.planned,
        committed=line is not None and line.committed,
        written=None if written is None else batch <= written,
        planned_ms=record.timestamp_ms if planned_ms is None and record is not None else planned_ms,
        watermark_ms=record.watermark_ms if watermark_ms is None and record is not None else watermark_ms,
        next_watermark_ms=line.next_watermark_ms if line is not None else None,
        ends=tuple(_ends(line, record)),
        **progress,
    )


def _ends(line: BatchLine | None, record: BatchRecord | None) -> Iterator[model.PositionEntry]:
    if line is not None and line.sources:
        yield from (model.PositionEntry(one.name, offset_value(one.end)) for one in line.sources)
    elif record is not None:
        yield from (model.PositionEntry(str(index), offset_value(one.end)) for index, one in enumerate(record.sources))


def _source(one: SourceFacts, recorded: LedgerRecords | None) -> model.Source:
    newest = recorded.batches[-1].sources if recorded is not None and recorded.batches else ()
    index = int(one.name) if one.name.isdigit() else len(newest)
    known = newest[index] if index < len(newest) else None
    shape, log = one.shape, one.log
    missing = () if isinstance(one.missing_files, Unknown) else one.missing_files
    unserved = () if isinstance(one.unserved, Unknown) else one.unserved
    return model.Source(
        name=one.name,
        kind=one.kind,
        start=offset_value(one.start),
        end=offset_value(one.end),
        latest=offset_value(known.latest) if known is not None else None,
        description=known.description if known is not None else shape.location if shape is not None else None,
        log_first=log.first if log is not None else None,
        log_last=log.last if log is not None else None,
        log_files=log.files if log is not None else None,
        missing_files=tuple(missing),
        unserved=tuple(unserved),
        options=model.shown_options(shape.options) if shape is not None else {},
    )


def _operator(line: OperatorLine) -> model.OperatorEntry:
    stores = (
        model.Store(
            store.name,
            store.provider,
            store.versions.first,
            store.versions.last,
            tuple(store.versions.missing),
            store.bytes,
        )
        for store in line.stores
    )
    return model.OperatorEntry(line.id, line.name, line.inferred, line.partitions, line.properties, tuple(stores))


def _sink(facts: Facts, sink: SinkFacts) -> model.SinkEntry:
    outputs = (
        model.OutputEntry(
            one.kind,
            one.location,
            one.written,
            one.batches_skipped,
            one.delivery.guarantee if one.delivery is not None else None,
            one.delivery.reason if one.delivery is not None else None,
        )
        for one in facts.snapshot.outputs
    )
    seen = sink.seen
    return model.SinkEntry(dict(sink.identity), tuple(outputs), seen.owner_name, tuple(seen.damage), seen.orphans)


def _run(run: RunRecord, *, messages: bool) -> model.Run:
    return _copied(
        model.Run,
        run,
        conditions=model.named_conditions(run.reason),
        message=run.reason if messages else None,
        settings=model.shown_settings(run.settings or {}),
    )


def _operation(one: OperationRecord, *, messages: bool) -> model.OperationEntry:
    """A refusal's reason can be an error message of Spark, with rows in it."""
    summary = one.summary if messages or one.status != REFUSED else None
    return _copied(model.OperationEntry, one, summary=summary)


def _finding(found: Diagnosed) -> model.FindingEntry:
    finding = found.finding
    explained = {one.code: one.sections for one in documented()}
    return _copied(
        model.FindingEntry,
        finding,
        severity=str(finding.severity),
        certainty=found.certainty,
        at_stake=found.at_stake,
        covers=found.covers,
        facts=found.facts,
        explanation=explained.get(finding.code, {}),
    )


def _error(error: ExplainedError) -> model.Error:
    """The error without the values of the text, which can be rows."""
    symptom = error.symptom
    return model.Error(symptom.symptom, str(symptom.certainty), error.causes)


def _unknown(examined: Examined, recorded: LedgerRecords | Unknown) -> Iterator[model.UnknownEntry]:
    facts = examined.facts
    if isinstance(recorded, Unknown):
        yield model.UnknownEntry("ledger", *recorded)
    if facts is None:
        error = examined.error
        yield model.UnknownEntry("checkpoint", str(error), error.hint if error is not None else None)
        return
    diagnosis = examined.diagnosis
    if diagnosis is not None and diagnosis.unread is not None:
        yield model.UnknownEntry("state", diagnosis.unread.reason, diagnosis.unread.how)
    if isinstance(facts.sink, Unknown):
        yield model.UnknownEntry("sink", *facts.sink)
    for source in facts.sources:
        of_files = (source.missing_files, source.changed_files, source.removed_files, source.too_old_files)
        for fact in (*of_files, source.unserved):
            if isinstance(fact, Unknown):
                yield model.UnknownEntry(f"source {source.name}", *fact)
    if isinstance(facts.code, Unknown):
        yield model.UnknownEntry("code", *facts.code)


def _lanes(facts: Facts | None, recorded: Sequence[int] | None) -> tuple[model.Lane, ...]:
    """The places that keep batches, from a plan to rows. ``recorded``: batches with progress in the ledger."""
    return (
        *(_lanes_of_files(facts) if facts is not None else ()),
        *(_lane_of_ledger(recorded) if recorded is not None else ()),
    )


def _lanes_of_files(facts: Facts) -> Iterator[model.Lane]:
    checkpoint, marks = facts.checkpoint, facts.marks
    yield model.Lane("planned", marks.planned, intervals(checkpoint.offset_ids), _damaged(checkpoint, OFFSETS))
    yield model.Lane("committed", marks.committed, intervals(checkpoint.commit_ids), _damaged(checkpoint, COMMITS))
    if marks.state is not None:
        yield model.Lane("state", marks.state, intervals(_batches_with_state(checkpoint.inventory)))
    shown = marks.written
    yield model.Lane("written", shown, ((0, shown),) if shown is not None and shown >= 0 else ())


def _damaged(checkpoint: CheckpointSeen, log: str) -> tuple[int, ...]:
    names = (item.path.rpartition("/")[2] for item in checkpoint.damage_below(log) if item.kind != "missing")
    return tuple(sorted({int(name) for name in names if name.isascii() and name.isdigit()}))


def _lane_of_ledger(recorded: Sequence[int]) -> Iterator[model.Lane]:
    yield model.Lane("recorded", max(recorded, default=-1), intervals(recorded))


def _batches_with_state(inventory: StateInventory) -> frozenset[int]:
    versions = [store.loadable for _, _, _, store in inventory.each()]
    common = frozenset.intersection(*versions) if versions else frozenset[int]()
    return frozenset(version - 1 for version in common if version > 0)


def intervals(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """The ends of each run of numbers: a file's name can claim batch 10**17."""
    known = sorted(set(numbers))
    if not known:
        return ()
    breaks = [(before, after) for before, after in pairwise(known) if after != before + 1]
    firsts = [known[0], *(after for _, after in breaks)]
    lasts = [*(before for before, _ in breaks), known[-1]]
    return tuple(zip(firsts, lasts, strict=True))


def _without_messages(examined: Examined) -> Examined:
    """Error messages of runs and outputs can have rows in them."""
    facts = examined.facts
    if facts is None:
        return examined
    last, history = facts.snapshot.last_run, facts.history
    silent = last._replace(reason=None) if last is not None else None
    refusal = facts.snapshot.last_refusal
    refused = refusal._replace(reason=None) if refusal is not None else None
    output, problem = facts.snapshot.output, facts.snapshot.output.unreadable
    unread = output._replace(unreadable=replace(problem, found=None)) if problem is not None else output
    blank: Facts = facts._replace(
        snapshot=facts.snapshot._replace(last_run=silent, last_refusal=refused, output=unread)
    )
    if isinstance(history, HistoryFacts):
        blank = blank._replace(history=history._replace(runs=tuple(run._replace(reason=None) for run in history.runs)))
    return replace(examined, facts=blank, diagnosis=diagnose(blank))


def _recorded(settings: Settings, examined: Examined, problem: SlackwaterError | None) -> LedgerRecords | Unknown:
    facts = examined.facts
    if problem is not None:
        return Unknown(f"the ledger cannot be read: {problem.message}", problem.hint)
    if facts is not None and not facts.recorded:
        return facts.history if isinstance(facts.history, Unknown) else Unknown("the stream is not recorded")
    try:
        with open_workspace(settings) as workspace:
            return _read(workspace.ledger, examined.name)
    except SlackwaterError as error:
        return Unknown(f"the ledger cannot be read: {error.message}", error.hint)


def _read(ledger: Ledger, name: str) -> LedgerRecords:
    lease = view_of(ledger.lease(name), ledger.now_ms())
    planned = max(ledger.newest_entry(name, "offsets"), 0)
    return LedgerRecords(
        stream=ledger.stream(name),
        place=ledger.place,
        runs=tuple(run._replace(end=end_of(run, lease)) for run in ledger.runs(name)),
        operations=tuple(ledger.operations(name)),
        batches=tuple(ledger.batches(name, first=max(planned - NEWEST_BATCHES, 0))),
        holder=lease.record.purpose if lease.state in {"held", "only-jvm"} and lease.record is not None else None,
    )
