"""The bundle's page: an HTML file without network or script, in the order of need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from slackwater.cli.verbs.evidence import parts
from slackwater.cli.verbs.evidence.batch_history import batch_history
from slackwater.cli.verbs.evidence.event_times import event_times
from slackwater.cli.verbs.evidence.markup import Html, element, join, pairs, prose, section, text
from slackwater.cli.verbs.evidence.model import Evidence, Head
from slackwater.cli.verbs.evidence.number_line import MEANINGS, next_words, number_line, shown
from slackwater.core.units import counted, utc_text
from slackwater.operations.goals.common.goal import GOALS, goal_named

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
        ("history", "Batch history", join([batch_history(made), parts.batches(made)])),
        ("times", "Event times", event_times(made)),
        ("errors", "Error texts", parts.errors(made)),
        ("sources", "Sources", parts.sources(made)),
        ("operators", "Stateful operators", parts.operators(made)),
        ("sink", "Sink", parts.sink(made)),
        ("runs", "Runs", parts.runs(made)),
        ("operations", "Operations", parts.operations(made)),
        ("checkpoint", "Stream and checkpoint", parts.checkpoint(made)),
        ("settings", "Settings", parts.settings(made)),
        ("findings", "Findings", parts.findings(made)),
        ("not-checked", "Not checked and unknown", parts.not_checked(made)),
    ]


def _marks(made: Evidence) -> Html:
    if made.marks is None:
        return Html("")
    rows: list[tuple[str, object]] = [(lane.name, f"{shown(lane)}: {MEANINGS[lane.name][1]}") for lane in made.lanes]
    rows.append(("next", f"batch {made.marks.next_batch}, {next_words(made.marks)}"))
    if made.marks.pending_no_data is not None:
        pending = f"batch {made.marks.pending_no_data}, without data, which a restart by Spark forgets"
        rows.append(("pending", pending))
    return pairs(rows)
