"""``slackwater doctor``: problems of a stream, with the risk and a safe remedy. Reads only."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial

from rich.console import Group
from rich.text import Text

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import Document, copied, marks_document, prepare
from slackwater.cli.common.examine import examine, exit_code, read_failed, with_compared_code, with_errors
from slackwater.cli.common.pages import blocks, compared, heading, labelled, marks_text, show
from slackwater.core.commands import command
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.core.facts import Severity, Unknown
from slackwater.core.units import counted
from slackwater.diagnose.catalogue import error_codes
from slackwater.diagnose.checks.common.check import Diagnosed
from slackwater.diagnose.doctor import Diagnosis
from slackwater.diagnose.error_texts import signs_of

SCHEMA = "slackwater.doctor/1"
_line = partial(labelled, width=13)
_STYLES = {Severity.INFO: "green", Severity.WARNING: "yellow", Severity.STOP: "red"}
_WORDS = {Severity.INFO: "note", Severity.WARNING: "warn", Severity.STOP: "stop"}
_PATH = r"""[^\s,;'"()\[\]=<>]"""
_FILE_OF_CHECKPOINT = re.compile(rf"((?:[a-z][a-z0-9+.-]*:/)?{_PATH}+?)/(?:state|sources|offsets|commits)/\d")
_READ = {"spark": "Spark {}", "batch": "batch {}", "location": "the checkpoint {}"}
_CAUSES = {
    "confirmed": "the cause, as {by} shows",
    "not-checked": "possible; not checked: {by}",
    "known": "likely; {by}",
    "not-visible": "possible; files do not show it: {by}",
    "excluded": "not the cause: {by} found nothing",
}


def doctor_document(examined: Sequence[Diagnosis]) -> Document:
    streams = []
    for one in examined:
        facts = one.facts
        errors = [
            copied(symptom, "symptom", "certainty", "line", line_number="where")
            | {
                "params": dict(symptom.params),
                "causes": [cause._asdict() for cause in symptom.causes],
                "signs": dict(signs_of(symptom)),
            }
            for symptom in one.errors
        ]
        of_text = {"errors": errors, "own_codes": list(one.own_codes), "read": dict(one.read)}
        if isinstance(facts, Unknown):
            problem = facts.error.as_dict() if isinstance(facts.error, SlackwaterError) else None
            streams.append({"stream": one.name if problem else None, "error": problem, **of_text})
            continue
        streams.append(
            {
                "stream": facts.name if facts.recorded else None,
                "checkpoint": facts.checkpoint.location,
                "recorded": facts.recorded,
                "query_id": facts.checkpoint.report.query_id,
                "marks": marks_document(facts.marks, "written"),
                "findings": [finding_document(found) for found in one.found],
                **of_text,
                "not_checked": [missed._asdict() for missed in one.not_checked],
                "unread": one.unread._asdict() if one.unread is not None else None,
            }
        )
    healthy = exit_code(examined) == 0 and not any(one.unread for one in examined)
    return {"schema": SCHEMA, "healthy": healthy, "streams": streams}


def finding_document(found: Diagnosed) -> Document:
    finding = found.finding
    fields = asdict(finding) | copied(found, "certainty", "at_stake") | {"covers": list(found.covers)}
    fields["facts"] = found.facts
    return {key: value for key, value in fields.items() if value not in (None, [], {})}


def doctor(
    *,
    target: str | None,
    every: bool,
    sink: str | None,
    error: str | None,
    verify: bool,
    pipeline: str | None,
    master: str | None,
    conf: list[str] | None,
    home: str | None,
    shown_as: Format,
) -> int:
    if every and target is not None:
        raise UsageError("usage", "--all and a LOCATION or STREAM exclude each other", hint=command("doctor", "--all"))
    alone = target is None and not every and error is not None
    if alone and pipeline is not None:
        raise UsageError(
            "usage",
            "--pipeline compares the code with a stream or a checkpoint; --error without one only explains the text",
            hint=command("doctor", "--all", "--error", error or "-", "--pipeline", pipeline),
        )
    settings = prepare(home, shown_as)
    failed = read_failed(error) if error is not None else None
    again = command("doctor", *([target] if target else []))
    if alone and failed is not None:
        examined: tuple[Diagnosis, ...] = (failed,)
    else:
        examined = examine(settings, target, sink, again, "all" if verify else "start")
    examined = with_compared_code(examined, pipeline, settings, master, conf)
    examined = tuple(with_errors(one, failed) for one in examined)
    show(shown_as, doctor_document(examined), lambda: doctor_page(examined))
    return exit_code(examined)


def doctor_page(examined: Sequence[Diagnosis]) -> Group:
    return blocks(examined, _block)


def _block(one: Diagnosis) -> Iterator[Text]:
    if isinstance(one.facts, Unknown):
        if one.facts.error is None:
            yield from _errors(one)
            yield from _after_text_alone(one)
            return
        yield heading(one.name, f"cannot be read: {one.facts.reason}", "red")
        if one.facts.how:
            yield _line("next", one.facts.how)
        return
    yield heading(one.name, *_summary(one))
    yield _line("marks", marks_text(marks_document(one.facts.marks, "written")))
    yield from _errors(one)
    for found in one.found:
        yield from _finding(found)
    missed = ((check.code, check.reason, check.how) for check in one.not_checked)
    for codes, reason, how in by_reason(missed):
        yield _line("not checked", f"{', '.join(codes)}: {reason}" + (f"; {how}" if how else ""))
    if one.unread is not None:
        yield _line("not read", f"{one.unread.reason}; {one.unread.how}")
    yield from _explained([*_likely(one), *one.own_codes, *(found.finding.code for found in one.problems)])
    if one.problems:
        yield _line("for others", command("evidence", one.name, "--out", "bundle.zip"))


def _errors(one: Diagnosis) -> Iterator[Text]:
    for error in one.errors:
        line = _line("error", "")
        line.append(error.symptom, style="bold")
        line.append(f"  line {error.where}: {error.line}")
        yield line
        for cause in error.causes:
            without_files = isinstance(one.facts, Unknown) and cause.state == "not-checked"
            seen = "possible" if without_files else _CAUSES[cause.state].format(by=cause.by).removesuffix(": ")
            yield _line("", f"{cause.code} ({cause.title}): {seen}")
        if all(cause.state == "excluded" for cause in error.causes):
            yield _line("", "the text is about a different checkpoint, or the problem has been repaired since")
        if error is one.errors[0] and (signs := signs_of(error)):
            yield _line("not decided", "the text alone does not tell the cause")
            yield from (_line("", f"{code} if {sign}") for code, sign in signs.items())
    for code in one.own_codes:
        yield _line("error", f"{code}, of Slackwater's own: {error_codes()[code].remedy}")
    if one.unrecognised:
        yield _line("error", "it is not a failure that Slackwater knows")
        read = (_READ[name].format(value) for name, value in one.read.items())
        if named := ", ".join(read):
            yield _line("", f"the text mentions {named}")


def _after_text_alone(one: Diagnosis) -> Iterator[Text]:
    if one.errors:
        found = filter(None, (_FILE_OF_CHECKPOINT.search(error.line) for error in one.errors))
        named = next((path[1] for path in found), None)
        # A text of stdin cannot be read again.
        text = () if one.name == "-" else ("--error", one.name)
        yield _line("not checked", "the files: no checkpoint and no stream was given")
        yield _line("next", command("doctor", named or "--all", *text))
        yield from _explained(_likely(one))
    else:
        if location := one.read.get("location"):
            yield _line("next", command("doctor", location))
        yield from _explained(one.own_codes)


def _likely(one: Diagnosis) -> list[str]:
    return [error.cause.code for error in one.errors if error.cause.state != "excluded"]


def _explained(codes: Sequence[str]) -> Iterator[Text]:
    if codes:
        yield _line("explained", "; ".join(command("explain", code) for code in dict.fromkeys(codes)))


def _summary(diagnosis: Diagnosis) -> tuple[str, str]:
    problems, missed = len(diagnosis.problems), len(diagnosis.not_checked)
    unchecked = f"{counted(missed, 'check')} could not be made" if missed else ""
    if problems:
        worst = diagnosis.problems[0].finding.severity
        return "; ".join(filter(None, (counted(problems, "finding"), unchecked))), _STYLES[worst]
    healthy = "healthy" if diagnosis.unread is None else "nothing found; state files were not read"
    return (f"nothing found, but {unchecked}", "yellow") if missed else (healthy, "green")


def _finding(found: Diagnosed) -> Iterator[Text]:
    finding = found.finding
    line = _line(_WORDS[finding.severity], "")
    line.append(finding.code, style=f"bold {_STYLES[finding.severity]}")
    # The text is a title, too, as in `status`: "clean: ...".
    line.append(f"  {finding.text.removeprefix(f'{finding.code}: ')}")
    yield line
    if found_instead := compared(finding):
        yield _line("", found_instead)
    if finding.severity is not Severity.INFO:
        weighed = [f"risk: {finding.risk}", found.certainty, f"at stake: {found.at_stake}" if found.at_stake else ""]
        yield _line("", ", ".join(filter(None, weighed)))
    for step in filter(None, (finding.next, finding.advice)):
        yield _line("", f"next: {step}")


def by_reason(missed: Iterable[tuple[str, str, str | None]]) -> list[tuple[list[str], str, str | None]]:
    """The codes of the checks that could not be made for the same reason. ``missed``: code, reason and how."""
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for code, reason, how in missed:
        reasons.setdefault((reason, how), []).append(code)
    return [(codes, reason, how) for (reason, how), codes in reasons.items()]
