"""The document ``slackwater.evidence/1`` (docs/json.md): an allow-list over the facts and the diagnosis that ``doctor``
has, and over records of the ledger.

Each part names the fields that it copies, and ``redacted``, the last step over every value, keeps secrets and rows on
the machine. Batches are -1 for none and ``None`` for unknown. ``_ms`` fields are epoch milliseconds or durations.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, Final

from slackwater import __version__
from slackwater.checkpoint.layout import COMMITS, OFFSETS
from slackwater.cli.common.console import Document, copied, offset_value
from slackwater.core.checkpoint import BatchLine
from slackwater.core.commands import command
from slackwater.core.errors import SinkUnreadable, SlackwaterError
from slackwater.core.facts import Facts, HistoryFacts, Severity, SinkFacts, SourceFacts, Unknown
from slackwater.core.masking import MASK, is_secret_name, mask, mask_setting
from slackwater.core.records import NEWEST_BATCHES, BatchRecord
from slackwater.core.settings import Settings
from slackwater.diagnose.doctor import Diagnosis, diagnose, documented
from slackwater.diagnose.error_texts import error_texts
from slackwater.ledger.home import Home
from slackwater.ledger.lease import end_of, view_of
from slackwater.ledger.workspace import open_workspace

SCHEMA: Final = "slackwater.evidence/1"
REFUSED = "refused"
_SPARKS_OWN = re.compile(
    r"spark\.(?:sql\.(?!catalog\.)|databricks\.|(?:executor|driver|task)\.(?:cores|cpus|memory|instances)|"
    r"shuffle\.|default\.|cores\.|memory\.|dynamicAllocation\.|speculation|locality\.|scheduler\.|network\.|"
    r"rpc\.|serializer|master$|version$)[\w.\-]*"
)
"""Settings of Spark's own; any other value may be a password."""
_OPTIONS_SHOWN = frozenset(
    {
        "startingoffsets", "endingoffsets", "startingtimestamp", "startingversion", "failondataloss",
        "maxoffsetspertrigger", "minoffsetspertrigger", "maxfilespertrigger", "maxbytespertrigger", "maxfileage",
        "latestfirst", "filenameonly", "cleansource", "format", "multiline", "header", "mode", "rowspersecond",
        "rowsperbatch", "numpartitions", "rampuptime", "subscribe", "subscribepattern", "ignorechanges",
        "ignoredeletes", "skipchangecommits", "readchangefeed", "schemaevolutionmode", "recursivefilelookup",
        "pathglobfilter", "modifiedafter", "modifiedbefore", "streaming-max-files-per-micro-batch",
    }
)  # fmt: skip
"""Options, in lower case, that bound a source's start and batches."""
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]{4,}(?:\.[A-Z][A-Z0-9_]+)*)\]")
_NAME = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_FIRST = re.compile(r"(?:\A|\.[A-Z]\w*(?:Exception|Error): )\[([A-Z][A-Z0-9]*_[A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]")
"""Spark puts an exception's condition at the start of a message, also after a class."""
_CLASS = re.compile(
    r"\b(?:(?:[a-z]\w*\.)+(?:\w+\$)*|(?=\w+:))([A-Z][A-Za-z0-9]{2,}(?:Exception|Error|Failure|Interrupted))\b"
)
"""With a package or before a colon: any other word can be of a row."""
_STATE = re.compile(r"\bSQLSTATE: ([0-9A-Z]{5})\b")
_PROBLEM = ("goal", "next", "advice", "where", "expected", "found")


def make_evidence(
    settings: Settings, examined: Diagnosis, problem: SlackwaterError | None, made_ms: int, *, messages: bool
) -> Document:
    """The document, with secrets hidden. ``messages`` keeps the error messages of runs."""
    if not messages:
        examined = _without_messages(examined)
    recorded = _recorded(settings, examined, problem, messages=messages)
    known, batches = ({}, None) if isinstance(recorded, Unknown) else recorded
    facts = examined.facts if isinstance(examined.facts, Facts) else None
    explained = {one.code: one.sections for one in documented()}
    made = {
        "schema": SCHEMA,
        "slackwater": __version__,
        "made_ms": made_ms,
        "head": _head(examined, problem, messages=messages),
        "stream": known.get("stream") or _stream(examined.name),
        "checkpoint": None,
        "marks": None,
        "lanes": _lanes(facts, batches),
        "batches": _batches(facts, batches or ()),
        "sources": (),
        "operators": (),
        "sink": None,
        "runs": known.get("runs", ()),
        "operations": known.get("operations", ()),
        "findings": [
            copied(one.finding, "code", "severity", "text", "risk")
            | copied(one, "certainty", "at_stake")
            | copied(one.finding, *_PROBLEM)
            | copied(one, "covers", "facts")
            | {"explanation": explained.get(one.finding.code, {})}
            for one in examined.found
        ],
        "errors": [copied(one, "symptom", "certainty", "causes") for one in examined.errors],
        "not_checked": examined.not_checked,
        "unknown": [{"what": what, "reason": reason, "how": how} for what, reason, how in _unknown(examined, recorded)],
        "code_compared": facts is not None and facts.code is not None and not isinstance(facts.code, Unknown),
    }
    if facts is not None:
        made |= _of_facts(facts, batches[-1] if batches else None)
    evidence: Document = redacted(made)
    return evidence


def _of_facts(facts: Facts, newest: BatchRecord | None) -> Document:
    """``settings`` are pinned by the newest entry in ``offsets/``. ``owner``: the stream that the output names as its
    writer.
    """
    seen, report, sink = facts.checkpoint, facts.checkpoint.report, None
    if isinstance(facts.sink, SinkFacts):
        outputs = [
            copied(one, "kind", "location", "written", skips_known_batches="batches_skipped")
            | {
                "guarantee": one.delivery.guarantee if one.delivery is not None else None,
                "guarantee_reason": one.delivery.reason if one.delivery is not None else None,
            }
            for one in facts.snapshot.outputs
        ]
        output = facts.sink.seen
        sink = {"identity": facts.sink.identity, "outputs": outputs, "owner": output.owner_name}
        sink |= copied(output, "damage", "orphans")
    names = ("location", "query_id", "spark_at_least", "spark_evidence", "offsets_version", "commits_version")
    return {
        "checkpoint": copied(report, *names, files="file_count", bytes="file_bytes")
        | {"settings": shown_settings(report.settings), "damage": seen.damage, "leftovers": report.leftovers},
        "marks": copied(facts.marks, "planned", "committed", "state", "written", "pending_no_data", "next_batch")
        | {"next_planned": facts.marks.next_is_planned},
        "sources": [_source(one, newest) for one in facts.sources],
        "operators": [
            copied(line, "id", "name", "inferred", "partitions", "properties")
            | {
                "stores": [
                    copied(store, "name", "provider", "first", "last", "missing", "bytes") for store in line.stores
                ]
            }
            for line in report.operators
        ],
        "sink": sink,
    }


def _head(examined: Diagnosis, problem: SlackwaterError | None, *, messages: bool) -> Document:
    """The gravest finding, if any; ``others`` are further stops and warnings."""
    missed, problems = len(examined.not_checked), examined.problems
    if problem is None and isinstance(examined.facts, Unknown) and isinstance(examined.facts.error, SlackwaterError):
        problem = examined.facts.error
    head: Document = {
        "state": "healthy",
        "code": "healthy",
        "text": "nothing is wrong",
        "risk": "none",
        "certainty": None,
    }
    head |= {"at_stake": None, **dict.fromkeys(_PROBLEM), "others": 0, "not_checked": missed}
    if problem is not None and not any(one.finding.severity is Severity.STOP for one in problems):
        lost = problem.code == "ledger-lost"
        return head | {
            "state": "stop",
            "code": problem.code,
            "text": problem.message,
            "risk": "stuck",
            "certainty": "certain",
            "goal": "resume" if lost else None,
            "next": command("plan", "resume", examined.name) if lost else None,
            "advice": None if lost else problem.hint,
            "where": problem.where,
            "expected": problem.expected,
            # What an error has found can be a text of a driver or of a library, or a value that is stored.
            "found": problem.found if messages else None,
            "others": len(problems),
        }
    if problems:
        worst = problems[0]
        return head | {
            "state": "stop" if worst.finding.severity is Severity.STOP else "warning",
            **copied(worst.finding, "code", "text", "risk", *_PROBLEM),
            **copied(worst, "certainty", "at_stake"),
            "others": len(problems) - 1,
        }
    if missed or examined.unread is not None:
        text = "nothing was found, but not everything could be checked"
        return head | {"state": "not-checked", "code": "not-checked", "text": text}
    if examined.found:
        return head | copied(examined.found[0].finding, "code", "text", "goal", "next", "advice")
    return head


def _stream(name: str, **recorded: object) -> Document:
    """``name`` of an unrecorded checkpoint is its location."""
    names = ("pipeline_file", "output_mode", "generation", "home", "ledger", "holder")
    return {"name": name, "recorded": bool(recorded), **dict.fromkeys(names), **recorded}


def _batches(facts: Facts | None, recorded: Sequence[BatchRecord]) -> list[Document]:
    lines = {line.id: line for line in facts.checkpoint.report.batches} if facts is not None else {}
    records = {record.batch_id: record for record in recorded}
    written = facts.marks.written if facts is not None else None
    known = {*lines, *records}
    if written is not None:
        # Those that a checkpoint from a backup lacks.
        known.update(range(max([-1, written - NEWEST_BATCHES, *known]) + 1, written + 1))
    # Spark trims its logs, and a rebuilt checkpoint begins with the first batch that was read again.
    trimmed = range(min([*lines, facts.marks.committed + 1])) if facts is not None else ()
    progress = ("run", "input_rows", "output_rows", "late_rows", "state_rows", "event_time_min_ms", "event_time_max_ms")
    batches = []
    for batch in sorted(known):
        line, record = lines.get(batch, BatchLine(batch, planned=False, committed=False)), records.get(batch)
        planned_ms, watermark_ms = line.timestamp_ms, line.watermark_ms
        ends = [(one.source, one.text) for one in line.sources]
        if record is not None:
            planned_ms = record.timestamp_ms if planned_ms is None else planned_ms
            watermark_ms = record.watermark_ms if watermark_ms is None else watermark_ms
            ends = ends or [(str(index), one.end) for index, one in enumerate(record.sources)]
        batches.append(
            {
                "batch": batch,
                "planned": line.planned,
                "committed": line.committed or batch in trimmed,
                "written": None if written is None else batch <= written,
                "planned_ms": planned_ms,
                "watermark_ms": watermark_ms,
                "next_watermark_ms": line.next_watermark_ms,
                **(copied(record, *progress) if record is not None else dict.fromkeys(progress)),
                "duration_ms": record.durations_ms.get("triggerExecution") if record is not None else None,
                "ends": [{"source": source, "offset": offset_value(end)} for source, end in ends],
            }
        )
    return batches


def _source(one: SourceFacts, newest: BatchRecord | None) -> Document:
    """``start`` and ``end`` bound the planned next batch; without a planned batch both are the position."""
    progress = newest.sources if newest is not None else ()
    index = int(one.name) if one.name.isdigit() else len(progress)
    known = progress[index] if index < len(progress) else None
    shape = one.shape
    return {
        "name": one.name,
        "kind": one.kind,
        "start": offset_value(one.start),
        "end": offset_value(one.end),
        "latest": offset_value(known.latest) if known is not None else None,
        "description": known.description if known is not None else shape.location if shape is not None else None,
        **{f"log_{name}": getattr(one.log, name, None) for name in ("first", "last", "files")},
        "missing_files": () if isinstance(one.missing_files, Unknown) else one.missing_files,
        "unserved": () if isinstance(one.unserved, Unknown) else one.unserved,
        "options": shown_options(shape.options) if shape is not None else {},
    }


def _unknown(examined: Diagnosis, recorded: object) -> Iterator[tuple[str, str, str | None]]:
    """Each missing fact, the reason, and a way to make it known."""
    facts = examined.facts
    if isinstance(recorded, Unknown):
        yield "ledger", recorded.reason, recorded.how
    if isinstance(facts, Unknown):
        yield "checkpoint", facts.reason, facts.how
        return
    if examined.unread is not None:
        yield "state", examined.unread.reason, examined.unread.how
    if isinstance(facts.sink, Unknown):
        yield "sink", facts.sink.reason, facts.sink.how
    for source in facts.sources:
        of_files = (source.missing_files, source.changed_files, source.removed_files, source.too_old_files)
        for fact in (*of_files, source.unserved):
            if isinstance(fact, Unknown):
                yield f"source {source.name}", fact.reason, fact.how
    if isinstance(facts.code, Unknown):
        yield "code", facts.code.reason, facts.code.how


def _lanes(facts: Facts | None, recorded: Sequence[BatchRecord] | None) -> list[Document]:
    """The places that keep batches, from a plan to rows: the mark, and the first and last of each run of batches.
    Entries of ``damaged`` cannot be read. The ledger has the batches with recorded progress.
    """
    lanes: list[tuple[str, int | None, tuple[tuple[int, int], ...], Sequence[int]]] = []
    if facts is not None:
        seen, marks = facts.checkpoint, facts.marks
        logs = (
            ("planned", marks.planned, seen.offset_ids, OFFSETS),
            ("committed", marks.committed, seen.commit_ids, COMMITS),
        )
        for name, mark, ids, folder in logs:
            names = (item.path.rpartition("/")[2] for item in seen.damage_below(folder) if item.kind != "missing")
            damaged = {int(one) for one in names if one.isascii() and one.isdigit()}
            lanes.append((name, mark, intervals(ids), sorted(damaged)))
        if marks.state is not None:
            versions = [store.loadable for _, _, _, store in seen.inventory.each()]
            common = frozenset.intersection(*versions) if versions else frozenset[int]()
            # State version N+1 is after batch N.
            lanes.append(("state", marks.state, intervals(version - 1 for version in common if version > 0), ()))
        shown = marks.written
        lanes.append(("written", shown, ((0, shown),) if shown is not None and shown >= 0 else (), ()))
    if recorded is not None:
        batches = [batch.batch_id for batch in recorded]
        lanes.append(("recorded", max(batches, default=-1), intervals(batches), ()))
    return [dict(zip(("name", "mark", "kept", "damaged"), lane, strict=True)) for lane in lanes]


def intervals(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """The ends of each run of numbers: a file's name can claim batch 10**17."""
    known = sorted(set(numbers))
    if not known:
        return ()
    breaks = [(before, after) for before, after in pairwise(known) if after != before + 1]
    firsts = [known[0], *(after for _, after in breaks)]
    lasts = [*(before for before, _ in breaks), known[-1]]
    return tuple(zip(firsts, lasts, strict=True))


def _without_messages(examined: Diagnosis) -> Diagnosis:
    """Error messages of runs and outputs can have rows in them."""
    if isinstance(examined.facts, Unknown):
        return examined
    snapshot, history = examined.facts.snapshot, examined.facts.history
    last, refusal, output = snapshot.last_run, snapshot.last_refusal, snapshot.output
    problem: Document = vars(output.unreadable) | {"found": None} if output.unreadable is not None else {}
    blank = snapshot._replace(
        last_run=last._replace(reason=None) if last is not None else None,
        last_refusal=refusal._replace(reason=None) if refusal is not None else None,
        output=output._replace(unreadable=SinkUnreadable(**problem) if problem else None),
    )
    if isinstance(history, HistoryFacts):
        history = history._replace(runs=tuple(run._replace(reason=None) for run in history.runs))
    return replace(diagnose(examined.facts._replace(snapshot=blank, history=history)), errors=examined.errors)


def _recorded(
    settings: Settings, examined: Diagnosis, problem: SlackwaterError | None, *, messages: bool
) -> tuple[Document, tuple[BatchRecord, ...]] | Unknown:
    """The stream, its runs and operations, newest first; and its newest batches. ``holder``: who may write now."""
    facts, name = examined.facts, examined.name
    if isinstance(facts, Facts) and not facts.recorded and problem is None:
        return facts.history if isinstance(facts.history, Unknown) else Unknown("the stream is not recorded")
    try:
        if problem is not None:
            raise problem
        with open_workspace(settings) as workspace:
            ledger = workspace.ledger
            lease, stream = view_of(ledger, name), ledger.stream(name)
            holder = lease.record
            runs = [
                {
                    **copied(run, "id", "generation", "spark_version", "started_ms", "ended_ms"),
                    "end": end_of(run, lease),
                    **copied(run, "failure", "failure_code"),
                    "conditions": named_conditions(run.reason),
                    "message": run.reason if messages else None,
                    "program": run.program,
                    "settings": shown_settings(run.settings or {}),
                }
                for run in reversed(ledger.runs(name))
            ]
            operations = [
                copied(one, "id", "goal", "status", "started_ms", "ended_ms")
                # A refusal's reason can be an error message of Spark, with rows in it.
                | {"summary": one.summary if messages or one.status != REFUSED else None}
                for one in reversed(ledger.operations(name))
            ]
            recorded = _stream(
                name,
                pipeline_file=stream.pipeline_file or None,
                output_mode=stream.output_mode,
                generation=stream.current_generation,
                home=str(Home(settings.home).location),
                ledger=ledger.place,
                holder=holder.purpose if lease.state in {"held", "only-jvm"} and holder is not None else None,
            )
            planned = max(ledger.newest_entry(name, "offsets"), 0)
            batches = tuple(ledger.batches(name, first=max(planned - NEWEST_BATCHES, 0)))
            return {"stream": recorded, "runs": runs, "operations": operations}, batches
    except SlackwaterError as error:
        return Unknown(f"the ledger cannot be read: {error.message}", error.hint)


def shown_settings(values: Mapping[str, str]) -> dict[str, str]:
    """The values of Spark's own settings; others are hidden."""
    return {
        name: mask_setting(name, str(value)) if _SPARKS_OWN.fullmatch(name) else MASK
        for name, value in sorted(values.items())
    }


def shown_options(values: Mapping[str, str]) -> dict[str, str]:
    """The values of harmless options; others are hidden."""
    return {
        name: mask_setting(name, str(value)) if name.lower() in _OPTIONS_SHOWN else MASK
        for name, value in sorted(values.items())
    }


def named_conditions(message: str | None) -> tuple[str, ...]:
    """Names of errors, exception classes and SQL states in a message, without values.

    Exceptions can quote rows: ``The value 'alice' ... cannot be cast``. A name in brackets can be a row, unless it is a
    known condition, or in a condition's place.
    """
    text = message or ""
    first = {match.start(1) for match in _FIRST.finditer(text)}
    known = {name for error in error_texts() for known_text in error.texts for name in _NAME.findall(known_text)}
    named = [
        match for match in _CONDITION.finditer(text) if match.start(1) in first or match[1].partition(".")[0] in known
    ]
    matches = (*named, *_CLASS.finditer(text), *_STATE.finditer(text))
    return tuple(dict.fromkeys(match[1] for match in matches))


def redacted(value: Any, name: str = "") -> Any:
    """The value as JSON has it, with all strings masked. ``name`` is its key."""
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()
        return MASK if is_secret_name(name) else mask(text)
    if isinstance(value, Mapping):
        keys = {key: mask(str(key).encode("utf-8", "backslashreplace").decode()) for key in value}
        return {keys[key]: redacted(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = value if isinstance(value, list | tuple) else sorted(value, key=str)
        return [redacted(item, name) for item in items]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else redacted(str(value), name)
