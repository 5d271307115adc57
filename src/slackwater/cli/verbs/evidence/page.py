"""The bundle's page: an HTML file without network or script, in the order of need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from slackwater.cli.common.console import mark, number, timestamp
from slackwater.cli.verbs.evidence.charts import (
    MEANINGS,
    Html,
    batch_history,
    code,
    element,
    event_times,
    join,
    json_code,
    lane_words,
    next_words,
    number_line,
    pairs,
    prose,
    section,
    span_text,
    table,
    text,
)
from slackwater.cli.verbs.evidence.model import Batch, Evidence, FindingEntry, Head, OperatorEntry, Run, Source
from slackwater.core.checkpoint import Damage
from slackwater.core.units import counted, duration_text, size_text, utc_text
from slackwater.operations.goals.goal import GOALS, goal_named

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The page loads nothing, whatever is in it."""

RISKS = {
    "loss": "Rows can be lost",
    "duplicate": "Rows can be written twice",
    "skip": "Rows can be skipped silently",
    "wrong": "Rows can be wrong",
    "stuck": "The stream does not run; no row is lost or doubled by it",
}
_COMMAND = re.compile(r"(?:^|: |after |or )((?:slackwater (?:run|plan|apply|undo)|mkdir -p|mv -n|printf %s) [^;\n]*)")
WORDS = {"stop": "STOP", "warning": "WARNING", "not-checked": "NOT ALL CHECKED", "healthy": "HEALTHY"}


SHOWN_BATCHES = 25
SHOWN_RUNS = 20
SHOWN_FILES = 20
YES = {True: "yes", False: "no", None: "unknown"}


def page(made: Evidence) -> str:
    sections = _sections(made)
    body = element(
        "main",
        element("h1", made.stream.name),
        element("p", _made(made), class_="made"),
        _head(made, made.head),
        _contents(sections),
        *(section(name, title, content) for name, title, content in sections),
    )
    title = f"{WORDS[made.head.state]}: {made.stream.name}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{_style()}</style></head><body>{body}</body></html>\n"
    )


@cache
def _style() -> str:
    return Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def _made(made: Evidence) -> str:
    known = "" if made.stream.recorded else " The ledger has no record of it."
    return f"Evidence made by Slackwater {made.slackwater} at {utc_text(made.made_ms)}.{known}"


def _head(made: Evidence, head: Head) -> Html:
    facts = [
        ("At stake", prose(_stake(made, head))),
        ("At", head.where),
        ("Expected", head.expected),
        ("Found", head.found),
        ("Certainty", head.certainty),
        ("Goal", _goal(head.goal)),
        ("Also", counted(head.others, "finding") + " below" if head.others else None),
        ("Not checked", counted(head.not_checked, "check") + ", with the reasons below" if head.not_checked else None),
        ("In use by", made.stream.holder),
    ]
    careful = head.state == "stop"
    return element(
        "div",
        element("span", WORDS[head.state], class_=f"badge {head.state}"),
        Html(" "),
        element("code", head.code),
        element("p", f"{head.text[:1].upper()}{head.text[1:].rstrip('.')}.", class_="what"),
        pairs(facts),
        *_next(head),
        element("p", "Do not start the query and do not delete anything before this is decided.") if careful else "",
        class_=f"head {head.state}",
        role="status",
    )


def _stake(made: Evidence, head: Head) -> str | None:
    if head.state == "healthy" or head.risk == "none":
        return None
    why = next((one.explanation.get("Effect") for one in made.findings if one.code == head.code), None)
    return ". ".join(filter(None, (f"{RISKS[head.risk]}{': ' + head.at_stake if head.at_stake else ''}", why)))


def _goal(goal: str | None) -> str | None:
    if goal is None or goal not in GOALS:
        return goal
    summary = goal_named(goal).summary
    return f"{goal}: {summary[:1].lower()}{summary[1:]}"


def _next(head: Head) -> Iterator[Html]:
    if head.next is not None:
        yield element("p", element("strong", "Next command"))
        yield element("code", head.next, class_="command")
        if head.next.split()[1] == "plan":
            yield element(
                "p", "It writes a plan, which says what would be done. Nothing is changed before that is applied."
            )
    if head.advice is not None:
        yield element("p", element("strong", "What to do: "), *_with_commands(head.advice), class_="advice")
    if head.next is None and head.advice is None and head.state in {"stop", "warning"}:
        yield element("p", "No command of Slackwater changes this: the finding below says what to do.")


def _with_commands(advice: str) -> Iterator[Html]:
    at = 0
    for found in _COMMAND.finditer(advice):
        yield prose(advice[at : found.start(1)])
        yield element("code", found[1], class_="command")
        at = found.end(1)
    yield prose(advice[at:])


def _contents(sections: list[tuple[str, str, Html]]) -> Html:
    links = (element("a", title, href=f"#{name}") for name, title, content in sections if content)
    return element("nav", *links, aria_label="Contents")


def _sections(made: Evidence) -> list[tuple[str, str, Html]]:
    return [
        ("marks", "Number line", join([number_line(made), _marks(made)])),
        ("history", "Batch history", join([batch_history(made), _batches_part(made)])),
        ("times", "Event times", event_times(made)),
        ("errors", "Error texts", _errors_part(made)),
        ("sources", "Sources", _sources_part(made)),
        ("operators", "Stateful operators", _operators_part(made)),
        ("sink", "Sink", _sink_part(made)),
        ("runs", "Runs", _runs_part(made)),
        ("operations", "Operations", _operations_part(made)),
        ("checkpoint", "Stream and checkpoint", _checkpoint_part(made)),
        ("settings", "Settings", _settings_part(made)),
        ("findings", "Findings", _findings_part(made)),
        ("not-checked", "Not checked and unknown", _not_checked_part(made)),
    ]


def _marks(made: Evidence) -> Html:
    if made.marks is None:
        return Html("")
    rows: list[tuple[str, object]] = [
        (lane.name, f"{lane_words(lane)}: {MEANINGS[lane.name][1]}") for lane in made.lanes
    ]
    rows.append(("next", f"batch {made.marks.next_batch}, {next_words(made.marks)}"))
    if made.marks.pending_no_data is not None:
        pending = f"batch {made.marks.pending_no_data}, without data, which a restart by Spark forgets"
        rows.append(("pending", pending))
    return pairs(rows)


def _batches_part(made: Evidence) -> Html:
    known = made.batches[-SHOWN_BATCHES:]
    title = f"Newest {len(known)} of {len(made.batches)} known batches" + (
        ", all of them in evidence.json" if len(known) < len(made.batches) else ""
    )
    # A phone shows the first columns.
    head = ("batch", "committed", "written", "rows in", "duration", "planned at", "watermark used", "event times over")
    return table(title, head, map(_batch, reversed(known)), numbers=(3, 4, 7))


def _batch(batch: Batch) -> Sequence[object]:
    return (
        batch.batch,
        YES[batch.committed],
        YES[batch.written],
        number(batch.input_rows),
        duration_text(batch.duration_ms) if batch.duration_ms is not None else "-",
        _time(batch.planned_ms) if batch.planned else "no entry in offsets/",
        _time(batch.watermark_ms),
        span_text(batch),
    )


def _time(epoch_ms: int | None) -> Html:
    return element("span", timestamp(epoch_ms), class_="time")


def _long(value: object) -> Html:
    return element("span", value, class_="long")


def _errors_part(made: Evidence) -> Html:
    """The causes of the error texts, confirmed causes first."""
    rows = (
        (error.symptom, error.certainty, cause.code, cause.title, cause.state, cause.by)
        for error in made.errors
        for cause in error.causes
    )
    return table("Causes of the error text", ("text", "certainty", "failure", "what it is", "state", "by"), rows)


def _sources_part(made: Evidence) -> Html:
    return join(_source(one) for one in made.sources)


def _source(one: Source) -> Html:
    planned = one.start != one.end
    shown: list[tuple[str, object]] = [
        ("reads", code(one.description) if one.description else None),
        ("next batch from" if planned else "position", json_code(one.start)),
        ("up to", json_code(one.end) if planned else None),
        ("newest seen", json_code(one.latest) if one.latest is not None else None),
        ("its own log", _source_log(one)),
        ("options", _named(one.options)),
    ]
    gone = table("Files of the next batch that do not exist", ("file",), ((code(path),) for path in one.missing_files))
    lost = table(
        "What the source does not have of the next batch",
        ("problem", "where", "expected", "found", "records"),
        ((item.problem, item.place, item.expected, item.found, number(item.records)) for item in one.unserved),
        numbers=(4,),
    )
    return element("article", element("h3", f"Source {one.name}: {one.kind}"), pairs(shown), gone, lost)


def _source_log(one: Source) -> str | None:
    if one.log_first is None:
        return None
    return f"entries {one.log_first} to {one.log_last}, {number(one.log_files)} files"


def _named(values: Mapping[str, Any]) -> Html | None:
    if not values:
        return None
    return join(element("div", code(f"{name} = {value}")) for name, value in values.items())


def _operators_part(made: Evidence) -> Html:
    return join(map(_operator, made.operators))


def _operator(one: OperatorEntry) -> Html:
    rows = (
        (
            store.name,
            store.provider or "unknown",
            _versions(store.first, store.last, store.missing),
            size_text(store.bytes) if store.bytes is not None else "-",
        )
        for store in one.stores
    )
    about = f"{one.partitions} partition{'s' * (one.partitions != 1)}" + (
        ", name inferred from its stores" if one.inferred else ""
    )
    stores = table(
        "State stores, and the versions that every partition can load", ("store", "provider", "versions", "size"), rows
    )
    details = pairs([("properties", json_code(dict(one.properties)))]) if one.properties else ""
    return element("article", element("h3", f"{one.id}: {one.name}, {about}"), details, stores)


def _versions(first: int | None, last: int | None, missing: Sequence[int]) -> str:
    if last is None:
        return "none can be loaded"
    gone = f", without {', '.join(map(str, missing[:10]))}" if missing else ""
    return f"{first} to {last}{gone}"


def _sink_part(made: Evidence) -> Html:
    if made.sink is None:
        return Html("")
    found = made.sink
    rows = (
        (one.kind, code(one.location or "-"), mark(one.written), one.guarantee or "unknown", one.guarantee_reason or "")
        for one in found.outputs
    )
    identity: list[tuple[str, object]] = [(name, code(value)) for name, value in found.identity.items()]
    return join(
        [
            pairs([*identity, ("output mode", made.stream.output_mode), ("written by", found.owner)]),
            table("Outputs", ("kind", "location", "written", "guarantee", "why"), rows, numbers=(2,)),
            _damage("Damage of the output", found.damage),
            table("Files that belong to no batch", ("file",), ((code(path),) for path in found.orphans[:SHOWN_FILES])),
        ]
    )


def _runs_part(made: Evidence) -> Html:
    title = f"Newest {min(SHOWN_RUNS, len(made.runs))} of {len(made.runs)} runs"
    head = ("run", "started", "ended", "end", "failure", "errors named", "Spark", "generation")
    rows = (
        (
            run.id,
            _time(run.started_ms),
            _time(run.ended_ms),
            run.end or "-",
            ", ".join(filter(None, (run.failure, run.failure_code))) or "-",
            _reason(run),
            run.spark_version,
            run.generation,
        )
        for run in made.runs[:SHOWN_RUNS]
    )
    left_out = any(run.end == "failed" and run.message is None for run in made.runs)
    note = "The messages of errors are left out: they can quote rows. --messages adds them." if left_out else ""
    return join([table(title, head, rows, numbers=(7,)), element("p", note, class_="note") if note else ""])


def _reason(run: Run) -> Html:
    names = join([code(", ".join(run.conditions))]) if run.conditions else text("-")
    message = element("div", _long(run.message)) if run.message is not None else ""
    return join([names, message])


def _operations_part(made: Evidence) -> Html:
    head = ("operation", "goal", "status", "started", "ended", "summary")
    rows = (
        (code(one.id), one.goal, one.status, _time(one.started_ms), _time(one.ended_ms), one.summary or "-")
        for one in made.operations
    )
    return table("Operations", head, rows)


def _checkpoint_part(made: Evidence) -> Html:
    stream, found = made.stream, made.checkpoint
    about: list[tuple[str, object]] = [
        ("stream", stream.name if stream.recorded else "not recorded"),
        ("pipeline", code(stream.pipeline_file) if stream.pipeline_file else None),
        ("generation", stream.generation),
        ("home", code(stream.home) if stream.home else None),
        ("ledger", code(stream.ledger) if stream.ledger else None),
    ]
    if found is None:
        return pairs(about)
    version = f"{found.spark_at_least} or later" if found.spark_at_least else "unknown"
    about += [
        ("checkpoint", code(found.location)),
        ("query id", code(found.query_id) if found.query_id else "unreadable"),
        ("written by Spark", f"{version} ({found.spark_evidence})"),
        ("logs", f"offsets v{found.offsets_version or '-'}, commits v{found.commits_version or '-'}"),
        ("files", f"{found.files:,}" + (f", {size_text(found.bytes)}" if found.bytes is not None else "")),
    ]
    left = found.leftovers[:SHOWN_FILES]
    return join(
        [
            pairs(about),
            _damage("Damage of the checkpoint", found.damage),
            table("Files that Spark ignores", ("file",), ((code(path),) for path in left)),
        ]
    )


def _damage(title: str, found: Sequence[Damage]) -> Html:
    rows = ((code(one.path), one.kind, one.expected, one.found) for one in found)
    return table(title, ("file", "kind", "expected", "found"), rows)


def _settings_part(made: Evidence) -> Html:
    pinned = made.checkpoint.settings if made.checkpoint is not None else {}
    newest = made.runs[0].settings if made.runs else {}
    names = sorted({*pinned, *newest})
    rows = ((code(name), _long(pinned.get(name, "-")), _long(newest.get(name, "-"))) for name in names)
    shown = table("Settings", ("setting", "pinned by the checkpoint", "of the newest run"), rows)
    note = "Hidden values are shown as ***: only settings of Spark itself have theirs."
    return join([shown, element("p", note, class_="note")]) if shown else shown


def _findings_part(made: Evidence) -> Html:
    return join(map(_finding, made.findings))


def _finding(one: FindingEntry) -> Html:
    compared: list[tuple[str, object]] = [
        ("where", one.where),
        ("expected", one.expected),
        ("found", one.found),
        ("risk", f"{one.risk}, {one.certainty}" if one.severity != "info" else None),
        ("at stake", one.at_stake),
        ("failures", ", ".join(one.covers)),
        ("next command", code(one.next) if one.next else None),
        ("advice", prose(one.advice)),
    ]
    explained = [(name, prose(words)) for name, words in one.explanation.items() if name != "References"]
    badge = element("span", one.severity, class_=f"badge {one.severity}")
    heading = element("h3", badge, Html(" "), code(one.code), f" {one.text}")
    return element("article", heading, pairs(compared), pairs(explained) if one.severity != "info" else "")


def _not_checked_part(made: Evidence) -> Html:
    missing = ((one.what, one.reason, one.how or "-") for one in made.unknown)
    return join(
        [
            table("What could not be read", ("what", "why", "what would show it"), missing),
            table("Checks that could not be made", ("checks", "why", "what would allow them"), _by_reason(made)),
        ]
    )


def _by_reason(made: Evidence) -> Iterator[Sequence[object]]:
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for one in made.not_checked:
        reasons.setdefault((one.reason, one.how), []).append(one.code)
    for (reason, how), codes in reasons.items():
        yield ", ".join(codes), reason, how or "-"
