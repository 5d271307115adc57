"""What a stream's marks mean for the next start.

A run refuses to start on stops, ``status`` shows findings, plans are built on them. Docstrings of the checks say what
they mean.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from slackwater.core.commands import application_words, code_words, write_code_command
from slackwater.core.facts import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.checks import number_line, output, stream
from slackwater.diagnose.checks.common.check import About, Check, When
from slackwater.diagnose.checks.common.snapshot import as_possible

AREAS = (stream, number_line, output)
_CHECKS: Iterator[Check[Snapshot]] = (one for area in AREAS for one in vars(area).values() if isinstance(one, Check))
RULES = tuple(sorted(_CHECKS, key=lambda rule: rule.code))


def findings(snapshot: Snapshot) -> tuple[Finding, ...]:
    """The most urgent first; never empty."""
    return tuple(finding for _, finding in _found(snapshot))


def stops(snapshot: Snapshot) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings(snapshot) if finding.severity is Severity.STOP)


def findings_about(snapshot: Snapshot, *subjects: About) -> tuple[Finding, ...]:
    rules = sorted((rule for rule in RULES if rule.about in subjects), key=_order)
    return tuple(finding for rule in rules for finding in rule.findings(snapshot))


def warnings(snapshot: Snapshot) -> tuple[Finding, ...]:
    """What a user should read before a start. Without the last run's failure, which this start answers, and the query,
    judged as it is now.
    """
    shown = ((rule, one) for rule, one in _found(snapshot) if rule.about not in {"last-run", "query"})
    return tuple(finding for _, finding in shown if finding.severity is Severity.WARNING)


def left_out(snapshot: Snapshot) -> tuple[Check[Snapshot], ...]:
    """Rules not applied while a process writes. Without those about the last run where the stream runs again."""
    if snapshot.holder is None:
        return ()
    compared = (rule for rule in RULES if rule.when is not When.ALWAYS or rule.about == "marker")
    about = {"last-run"} if snapshot.holder == "run" else set[About]()
    wrong = (rule for rule in compared if rule.severity is not Severity.INFO and rule.about not in about)
    return tuple(sorted(wrong, key=_order))


def codes_from_plan(found: Iterable[Finding]) -> tuple[str, ...]:
    """Codes that rest on the last run's recorded plan."""
    codes = {rule.code for rule in RULES if rule.from_plan}
    return tuple(finding.code for finding in found if finding.code in codes)


def _found(snapshot: Snapshot) -> list[tuple[Check[Snapshot], Finding]]:
    """Marks that are wrong or change meanwhile would give false findings."""
    comparable = snapshot.holder is None and snapshot.output.unmarked is None
    rules = [rule for rule in RULES if comparable or rule.when is When.ALWAYS]
    found = list(_apply((rule for rule in rules if rule.when is not When.IN_ORDER), snapshot))
    if not any(finding.severity is Severity.STOP or finding.exit_code for _, finding in found):
        found += _apply((rule for rule in rules if rule.when is When.IN_ORDER), snapshot)
    return sorted(found, key=lambda one: _order(one[0]))


def _apply(rules: Iterable[Check[Snapshot]], snapshot: Snapshot) -> Iterator[tuple[Check[Snapshot], Finding]]:
    words = () if snapshot.code_file else code_words(snapshot)
    for rule in rules:
        for found in rule.findings(snapshot):
            finding = as_possible(found, snapshot)
            if words and words[0] in f"{finding.next} {finding.advice}":
                about = application_words(snapshot.stream.name, write_code_command(snapshot.stream))
                finding = replace(finding, advice=f"{finding.advice}; {about}" if finding.advice else about)
            yield rule, finding


def _order(rule: Check[Snapshot]) -> int:
    return rule.order
