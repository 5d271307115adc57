"""A stream's diagnosis: findings, unchecked and healthy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from slackwater.core.commands import command
from slackwater.core.facts import Fact, Facts, Finding, Severity, Unknown
from slackwater.core.units import counted, size_text
from slackwater.core.verdict import Effect, StreamVerdict
from slackwater.diagnose.checkpoint_changes import operator_kind
from slackwater.diagnose.checks import (
    application,
    changes,
    delta,
    file_source,
    kafka,
    log,
    log_content,
    number_line,
    sink,
    state,
    store,
    versions,
    watermark,
)
from slackwater.diagnose.checks.code import CHANGES, ChangeOfCode
from slackwater.diagnose.checks.common.check import Certainty, Check, Diagnosed, NotChecked, When, diagnosed, missing
from slackwater.diagnose.checks.common.snapshot import sink_kind
from slackwater.diagnose.number_line import RULES, findings, left_out

if TYPE_CHECKING:
    from slackwater.diagnose.error_texts import Symptom

AREAS = (
    application, changes, delta, file_source, kafka, log, log_content, sink, state, store, versions, watermark,
)  # fmt: skip
"""The number line's areas are in ``number_line.AREAS``."""
_SEVERITIES = (Severity.STOP, Severity.WARNING, Severity.INFO)
_NO_PROGRAM = "the files of a checkpoint do not have the program of the query that made them"
_UNREADABLE = "the plan or the code of the query cannot be read"
_WITHOUT_HOME = "restore the old code; or give the changed query a new checkpoint and a new output"
"""No command of Slackwater changes an unrecorded checkpoint."""
_UNREAD_SHOWN = 3
_RISKS = ("loss", "duplicate", "skip", "wrong", "stuck", "none")
"""The gravest first: silent failures before failures with an error."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A diagnosis of a stream or checkpoint, even if it cannot be read; or of a failure's text, without an error.

    ``found`` has the gravest first; ``not_checked`` is never shown as healthy. ``unread`` state is read only with
    ``--verify``, and verified by the store: reported, without an effect on the result. ``errors`` are causes of the
    given failure text, or of the last run's failure; ``own_codes`` are Slackwater's errors in that text.
    ``unrecognised``: it has no known failure; ``read`` are its facts about the query.
    """

    name: str
    facts: Fact[Facts]
    found: tuple[Diagnosed, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    unread: NotChecked | None = None
    errors: tuple[Symptom, ...] = ()
    own_codes: tuple[str, ...] = ()
    unrecognised: bool = False
    read: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def problems(self) -> tuple[Diagnosed, ...]:
        """The findings without those on how the stream continues."""
        return tuple(one for one in self.found if one.finding.severity is not Severity.INFO)


def documented() -> tuple[Check[Any], ...]:
    """Rules of the number line, checks, and changes of a query."""
    return (*RULES, *checks(), *change_texts())


@cache
def checks() -> tuple[Check[Facts], ...]:
    found: Iterator[Check[Facts]] = (one for area in AREAS for one in vars(area).values() if isinstance(one, Check))
    return tuple(sorted(found, key=lambda check: check.code))


def diagnose(facts: Facts) -> Diagnosis:
    found: list[Diagnosed] = []
    not_checked: list[NotChecked] = []
    for check in checks():
        unknown = missing(check, facts)
        if unknown is None:
            found.extend(diagnosed(check, facts))
        else:
            not_checked.append(NotChecked(check.code, check.meaning, unknown.reason, unknown.how))
    if isinstance(facts.code, Unknown):
        not_checked.append(_code_not_checked(facts.code))
    elif facts.code is not None:
        found += _of_code(facts.code, recorded=facts.recorded)
        not_checked += _not_in_files(facts, facts.code)
    explained = _explained(found, facts)
    found += [one for one in _of_number_line(facts) if one.finding.code not in explained]
    if isinstance(facts.sink, Unknown):
        unseen = (rule for rule in RULES if rule.on_output and rule.severity is not Severity.INFO)
        not_checked += [NotChecked(rule.code, rule.meaning, facts.sink.reason, facts.sink.how) for rule in unseen]
    holder, again = facts.snapshot.holder, command("doctor", facts.name)
    reason = f"{holder} is in progress, and changes what is compared"
    how = f"when it has ended: {again}"
    if holder == "run":
        reason = "the stream is running, which changes what is compared"
        how = f"stop it: {command('stop', facts.name)}; then: {again}"
    known = {one.code for one in not_checked}
    in_use = (rule for rule in left_out(facts.snapshot) if rule.code not in known)
    not_checked += [NotChecked(rule.code, rule.meaning, reason, how) for rule in in_use]
    unread = _unread_state(facts)
    by_store = facts.snapshot.unread_state.verified_by_store
    if unread is not None and not by_store:
        not_checked.append(unread)
    gravest = tuple(sorted(found, key=_urgency))
    return Diagnosis(facts.name, facts, gravest, tuple(not_checked), unread if by_store else None)


def _unread_state(facts: Facts) -> NotChecked | None:
    unread = facts.snapshot.unread_state
    if not unread.paths or facts.snapshot.holder is not None:
        # While a process writes, no damage is compared, whatever was read.
        return None
    rule, count, files = number_line.checkpoint_damaged, len(unread.paths), unread.paths[:_UNREAD_SHOWN]
    kind = "on a remote store" if unread.verified_by_store else "without a checksum"
    more = f" and {count - len(files):,} more" if count > len(files) else ""
    reason = (
        f"{counted(count, 'state file')} {kind} ({size_text(unread.size)}) could not be checked without --verify: "
        f"{', '.join(files)}{more}"
    )
    return NotChecked(rule.code, rule.meaning, reason, f"run: {command('doctor', facts.name, '--verify')}")


def start_findings(facts: Facts) -> Iterator[Diagnosed]:
    """Findings, besides the number line's, of silently wrong rows after a start."""
    for check in checks():
        if check.at_start and missing(check, facts) is None:
            yield from diagnosed(check, facts)


def found_at_start(facts: Facts) -> tuple[Finding, ...]:
    """Findings of the number line and of a start, the gravest first."""
    at_start = list(start_findings(facts))
    explained = _explained(at_start, facts)
    line = (one for one in findings(facts.snapshot) if one.code not in explained)
    found = (*(one.finding for one in at_start), *line)
    return tuple(sorted(found, key=lambda one: _SEVERITIES.index(one.severity)))


def _explained(found: Sequence[Diagnosed], facts: Facts) -> frozenset[str]:
    codes = {one.finding.code for one in found}
    explained = {code for check in checks() if check.code in codes for code in check.explains}
    damaged = {item.path for item in facts.snapshot.damage}
    if damaged and damaged <= frozenset[str]().union(*(one.damage for one in found)):
        explained.add(number_line.checkpoint_damaged.code)
    if any(one.finding.severity is Severity.STOP for one in found):
        explained |= {rule.code for rule in RULES if rule.when is When.IN_ORDER}
    return frozenset(explained)


def _of_number_line(facts: Facts) -> Iterator[Diagnosed]:
    covers = {rule.code: rule.covers for rule in RULES}
    output_unknown = isinstance(facts.sink, Unknown) and not facts.recorded
    on_output = {rule.code for rule in RULES if rule.on_output}
    for finding in findings(facts.snapshot):
        if output_unknown and finding.code in on_output:
            continue
        # No command of Slackwater changes an unrecorded checkpoint.
        shown = finding if facts.recorded else replace(finding, next=None)
        # Nothing looks into the user's function: it may write a batch twice without doubling a row.
        is_open = finding.risk == "duplicate" and sink_kind(facts.snapshot).startswith("foreach")
        yield Diagnosed(shown, "possible" if is_open else "certain", None, {}, covers.get(finding.code, ()))


def _of_code(judged: StreamVerdict, *, recorded: bool) -> Iterator[Diagnosed]:
    ways = (judged.ways if recorded else (_WITHOUT_HOME,)) or (None,)
    for change in judged.verdict.changes:
        keeps = change.effect <= Effect.COMPATIBLE
        severity = Severity.WARNING if change.effect is Effect.CHANGES_ROWS else Severity.STOP
        finding = Finding(
            change.code,
            Severity.INFO if keeps else severity,
            change.text,
            risk="none" if keeps else "wrong" if change.acceptable else "stuck",
            goal=change.goal,
            advice=None if keeps else ways[0],
            where=change.place,
            expected=change.before,
            found=change.after,
        )
        certainty: Certainty = "certain" if judged.basis == "recorded" else "likely"
        yield Diagnosed(finding, certainty, None, {"effect": change.effect.word}, ())


def _code_not_checked(unknown: Unknown) -> NotChecked:
    return NotChecked("code", "The code and the kept state do not fit.", unknown.reason, unknown.how)


def _not_in_files(facts: Facts, judged: StreamVerdict) -> Iterator[NotChecked]:
    if judged.basis == "unreadable":
        yield _code_not_checked(Unknown(_UNREADABLE, "compare the code with the one that ran before"))
    if judged.basis != "checkpoint":
        return
    operators = [operator_kind(one.name) for one in facts.checkpoint.report.operators]
    for text in change_texts():
        possible = text.stateless or any(kind is None or kind in (text.only_with or {kind}) for kind in operators)
        if not text.in_files and text.effect > Effect.COMPATIBLE and possible:
            yield NotChecked(text.code, text.meaning, _NO_PROGRAM, "compare the code with the one that ran before")


def _urgency(one: Diagnosed) -> tuple[int, int, str]:
    finding = one.finding
    return _SEVERITIES.index(finding.severity), _RISKS.index(finding.risk), finding.code


@cache
def change_texts() -> tuple[ChangeOfCode, ...]:
    return tuple(sorted(CHANGES, key=lambda text: text.code))
