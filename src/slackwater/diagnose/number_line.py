"""The number line of a stream: what its marks, compared with each other, mean for the next start.

A run refuses to start on the stops found here, ``status`` shows them, plans are built on them. Each finding is a file
of ``rules``; their docstrings say what it means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from slackwater.core.commands import application_words, code_words, write_code_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.checks import number_line, output, stream
from slackwater.diagnose.checks.common.check import About, Check, When
from slackwater.diagnose.checks.common.snapshot import as_possible

AREAS = (stream, number_line, output)
_CHECKS: Iterator[Check[Snapshot]] = (one for area in AREAS for one in vars(area).values() if isinstance(one, Check))
RULES = tuple(sorted(_CHECKS, key=lambda rule: rule.code))


def findings(snapshot: Snapshot) -> tuple[Finding, ...]:
    """Everything that is known of the stream, the most urgent first; never empty."""
    return tuple(finding for _, finding in _found(snapshot))


def stops(snapshot: Snapshot) -> tuple[Finding, ...]:
    """What a start must be refused for."""
    return tuple(finding for finding in findings(snapshot) if finding.severity is Severity.STOP)


def findings_about(snapshot: Snapshot, *subjects: About) -> tuple[Finding, ...]:
    """The findings about these subjects only, whatever else was found."""
    rules = sorted((rule for rule in RULES if rule.about in subjects), key=_order)
    return tuple(finding for rule in rules for finding in rule.findings(snapshot))


def warnings(snapshot: Snapshot) -> tuple[Finding, ...]:
    """What a user should read before the stream starts.

    Without the last run's failure, which this start is the answer to, and the query, which is judged as it is now.
    """
    shown = ((rule, one) for rule, one in _found(snapshot) if rule.about not in {"last-run", "query"})
    return tuple(finding for _, finding in shown if finding.severity is Severity.WARNING)


def left_out(snapshot: Snapshot) -> tuple[Check[Snapshot], ...]:
    """The rules of what is wrong that are not applied, as a process writes; none where no process holds the lease.

    Without those about the last run where the stream runs again: that run is the answer to it.
    """
    if snapshot.holder is None:
        return ()
    compared = (rule for rule in RULES if rule.when is not When.ALWAYS or rule.about == "marker")
    about = {"last-run"} if snapshot.holder == "run" else set[About]()
    wrong = (rule for rule in compared if rule.severity is not Severity.INFO and rule.about not in about)
    return tuple(sorted(wrong, key=_order))


def codes_from_plan(found: Iterable[Finding]) -> tuple[str, ...]:
    """The codes of the findings that rest on the query's plan, as its last run recorded it."""
    codes = {rule.code for rule in RULES if rule.from_plan}
    return tuple(finding.code for finding in found if finding.code in codes)


def _found(snapshot: Snapshot) -> list[tuple[Check[Snapshot], Finding]]:
    """What the rules find, in their order. Marks that are wrong or change meanwhile would give false findings."""
    comparable = snapshot.holder is None and snapshot.output.unmarked is None
    rules = [rule for rule in RULES if comparable or rule.when is When.ALWAYS]
    found = list(_apply((rule for rule in rules if rule.when is not When.IN_ORDER), snapshot))
    if not any(finding.severity is Severity.STOP or finding.exit_code for _, finding in found):
        found += _apply((rule for rule in rules if rule.when is When.IN_ORDER), snapshot)
    return sorted(found, key=lambda one: _order(one[0]))


def _apply(rules: Iterable[Check[Snapshot]], snapshot: Snapshot) -> Iterator[tuple[Check[Snapshot], Finding]]:
    found = ((rule, as_possible(finding, snapshot)) for rule in rules for finding in rule.findings(snapshot))
    return ((rule, _with_code(finding, snapshot)) for rule, finding in found)


def _with_code(finding: Finding, snapshot: Snapshot) -> Finding:
    """With words on a command that needs the code of a watched query, where no file is known that has it."""
    words = code_words(snapshot)
    if not words or snapshot.code_file or words[0] not in f"{finding.next} {finding.advice}":
        return finding
    about = application_words(snapshot.stream.name, write_code_command(snapshot.stream))
    return replace(finding, advice=f"{finding.advice}; {about}" if finding.advice else about)


def _order(rule: Check[Snapshot]) -> int:
    return rule.order
