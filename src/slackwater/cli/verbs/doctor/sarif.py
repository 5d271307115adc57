"""The findings as SARIF 2.1.0 (OASIS standard), which code hosts and editors show as results of a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from slackwater import __version__
from slackwater.cli.common.examined import Examined
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Diagnosed

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
URI = "/:@!$&'()*+,;=~"
"""Characters that a place keeps as a URI reference: of a path a # or ? would begin another part."""
LEVELS = {Severity.STOP: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif_document(examined: Sequence[Examined]) -> dict[str, Any]:
    """One run with the results of all streams; what could not be checked is a notification of the run."""
    diagnosed = [(one, one.diagnosis) for one in examined if one.diagnosis is not None]
    results = [_result(one, found) for one, diagnosis in diagnosed for found in diagnosis.problems]
    missed = [_notification(f"{one.code}: {one.reason}", one.code) for _, diag in diagnosed for one in diag.not_checked]
    unverified = [diag.unread for _, diag in diagnosed if diag.unread is not None]
    missed += [_notification(f"{one.code}: {one.reason}; {one.how}", one.code, "note") for one in unverified]
    unread = [_notification(f"{one.name}: {one.error}", "not-read") for one in examined if one.diagnosis is None]
    codes = sorted({str(result["ruleId"]) for result in results})
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "slackwater", "version": __version__, "rules": [{"id": code} for code in codes]}
                },
                "invocations": [{"executionSuccessful": not unread, "toolExecutionNotifications": [*missed, *unread]}],
                "results": results,
            }
        ],
    }


def _result(one: Examined, found: Diagnosed) -> dict[str, Any]:
    finding = found.finding
    steps = "".join(f" Next: {step}." for step in (finding.next, finding.advice) if step)
    place = finding.where or (one.facts.checkpoint.location if one.facts is not None else one.name)
    return {
        "ruleId": finding.code,
        "level": LEVELS[finding.severity],
        "message": {"text": f"{one.name}: {finding.text}.{steps}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": quote(place, safe=URI)}}}],
        "properties": {"risk": finding.risk, "goal": finding.goal, "certainty": found.certainty},
    }


def _notification(text: str, code: str, level: str = "warning") -> dict[str, Any]:
    return {"level": level, "message": {"text": text}, "descriptor": {"id": code}}
