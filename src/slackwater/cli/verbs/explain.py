"""``slackwater explain``: the meaning of a code, its symptoms, and the remedy."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

from rich.console import Group
from rich.text import Text

from slackwater.cli.common.arguments import Format, shortened
from slackwater.cli.common.pages import heading, show
from slackwater.core.commands import command
from slackwater.core.errors import UsageError
from slackwater.core.escaping import one_line
from slackwater.diagnose.catalogue import Failure, How, error_codes, known_failures
from slackwater.diagnose.checks.common.check import FAILED, HEADINGS, Check
from slackwater.diagnose.checks.common.snapshot import FAILURES
from slackwater.diagnose.doctor import documented
from slackwater.diagnose.error_texts import SIGNS, covering, error_texts
from slackwater.diagnose.number_line import RULES

SCHEMA = "slackwater.explain/1"
FOUND = 1
"""``slackwater doctor``'s exit code after a finding."""
CODES_SCHEMA = "slackwater.codes/1"
LABEL_WIDTH = max(len(heading) for heading in HEADINGS) + 2
_COMMAND = re.compile(r"`(slackwater [^`]+)`")
TRANSIENT = frozenset({"store-unreachable"})
"""Failures after which a run restarts by itself."""
MET: Mapping[How, str] = {"run": "refused or prevented", "not-detectable": "not seen in any file"}
SAFE = {
    1: "nothing is known; please report the defect",
    2: "yes; the command stopped before it changed anything",
    3: "yes; nothing was written to what is damaged",
    4: "yes; the command stopped before it changed anything",
    5: "yes; nothing was changed",
    6: "only as the hint says: something may have been changed",
    7: "yes; a run continues after the newest batch that was finished, as the sink guarantees",
    9: "yes; the same command continues what was started",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """``severity``, ``risk`` and ``confirm`` are ``None`` for errors. ``matters``: the consequence; ``commands`` are in
    ``remedy``.
    """

    code: str
    kind: str
    exit_code: int
    meaning: str
    finds: str
    matters: str
    confirm: str | None = None
    remedy: str
    commands: tuple[str, ...] = ()
    safe: str = ""
    references: tuple[str, ...] = ()
    severity: str | None = None
    risk: str | None = None

    @property
    def sections(self) -> dict[str, str]:
        texts = (self.finds, self.matters, self.confirm, self.remedy, self.safe, ", ".join(self.references))
        return {heading: text for heading, text in zip(HEADINGS, texts, strict=True) if text}


def explanation(code: str) -> Explanation:
    """Raises UsageError (``code-unknown``) with similar codes."""
    rule = next((one for one in documented() if one.code == code or code in one.covers), None)
    if rule is not None:
        return _of_rule(rule)
    if code in error_codes():
        error = error_codes()[code]
        kind = error.kind.__doc__ or ""
        causes = ["; or: ".join(error.causes)] if len(error.causes) > 1 else []
        expected = [f"expected: {error.expected}"] if error.expected else []
        return Explanation(
            code=error.code,
            kind="error",
            exit_code=error.kind.exit_code,
            meaning=error.causes[0],
            finds="; ".join((*causes, *expected)),
            matters=" ".join(kind.partition("\n")[0].split()),
            remedy=error.remedy,
            safe=SAFE[error.kind.exit_code],
        )
    if code in known_failures():
        return _of_failure(code, known_failures()[code])
    if code in FAILURES:
        meaning, goal = FAILURES[code]
        remedy = f"`{command('doctor', 'STREAM')}` shows the remedy"
        return Explanation(
            code=code,
            kind="failed run",
            exit_code=FAILED,
            meaning=_sentence(meaning),
            finds="the error of Spark, or of the pipeline's own code, with which the last run failed",
            matters="the same run would fail again"
            if code not in TRANSIENT
            else "the run was started again some times",
            confirm=f"`{command('ledger', 'STREAM')}` shows the error",
            remedy=f"{remedy}; its goal is {goal}" if goal else remedy,
            commands=tuple(_COMMAND.findall(remedy)),
        )
    near = get_close_matches(code, [known for known, _ in all_codes()], n=3)
    raise UsageError(
        "code-unknown",
        "No finding or error has this code",
        expected=f"a code such as {', '.join(near)}" if near else "a code that the list of all codes has",
        found=shortened(code),
        hint=command("explain", near[0]) if near else command("explain"),
    )


def all_codes() -> list[tuple[str, str]]:
    errors = {code: error.causes[0] for code, error in error_codes().items()}
    findings = {rule.code: rule.meaning for rule in documented()}
    finders = covering()
    failures = {code: failure.title for code, failure in known_failures().items() if code not in finders}
    runs = {code: _sentence(meaning) for code, (meaning, _) in FAILURES.items()}
    return sorted((runs | errors | findings | failures).items())


def explain_page(found: Explanation) -> Group:
    facts = [found.kind, found.severity, f"risk {found.risk}" if found.risk else None, f"exit code {found.exit_code}"]
    lines = [Text(f"  {label:<{LABEL_WIDTH}}{text}") for label, text in found.sections.items()]
    first = heading(found.code, ", ".join(fact for fact in facts if fact), "dim")
    return Group(first, Text(found.meaning), *lines)


def _of_rule(rule: Check[Any]) -> Explanation:
    finds, matters, confirm, remedy, safe, references = (rule.sections.get(heading, "") for heading in HEADINGS)
    return Explanation(
        code=rule.code,
        kind="finding",
        exit_code=rule.exit_code if rule in RULES else FOUND,
        meaning=rule.meaning,
        finds=finds,
        matters=matters,
        confirm=confirm,
        remedy=remedy,
        commands=tuple(_COMMAND.findall(remedy)),
        safe=safe,
        references=tuple(references.split(", ")) if references else (),
        severity=rule.severity.value,
        risk=rule.risk,
    )


def _of_failure(code: str, failure: Failure) -> Explanation:
    texts = [error.texts[0] for error in error_texts() if code in error.codes]
    looks = f"{command('doctor', 'STREAM', '--error', 'FILE')} looks for the causes of a text in the files"
    return Explanation(
        code=code,
        kind="failure",
        exit_code=FOUND,
        meaning=failure.title,
        finds="; or: ".join(f'"{one_line(text)}"' for text in texts),
        matters=f"{MET[failure.how]}: {failure.text}" if failure.how is not None else failure.text,
        confirm=looks + (f"; it is this failure if {SIGNS[code]}" if code in SIGNS else "") if texts else None,
        remedy="",
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def explain(*, code: str | None, shown_as: Format) -> int:
    if code is None:
        codes = all_codes()
        listed = [{"code": known, "meaning": meaning} for known, meaning in codes]
        width = max(len(known) for known, _ in codes) + 2
        page = Group(*(Text(f"{known:<{width}}{meaning}") for known, meaning in codes))
        show(shown_as, {"schema": CODES_SCHEMA, "codes": listed}, lambda: page)
    else:
        found = explanation(code)
        show(shown_as, {"schema": SCHEMA, **asdict(found)}, lambda: explain_page(found))
    return 0
