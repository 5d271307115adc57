"""The document ``slackwater.doctor/1`` (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from slackwater.cli.common.console import marks_document
from slackwater.cli.common.examine import Examined, exit_code
from slackwater.diagnose.causes import ExplainedError
from slackwater.diagnose.checks.common.check import Diagnosed
from slackwater.diagnose.signs import signs_of

SCHEMA = "slackwater.doctor/1"


def doctor_document(examined: Sequence[Examined]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "healthy": exit_code(examined) == 0 and not any(one.diagnosis and one.diagnosis.unread for one in examined),
        "streams": [_fields(one) for one in examined],
    }


def _fields(one: Examined) -> dict[str, Any]:
    errors, own, read = [_error(error) for error in one.errors], list(one.own_codes), dict(one.read)
    if one.facts is None or one.diagnosis is None:
        problem = one.error.as_dict() if one.error is not None else None
        return {
            "stream": one.name if problem else None,
            "error": problem,
            "errors": errors,
            "own_codes": own,
            "read": read,
        }
    facts = one.facts
    return {
        "stream": facts.name if facts.recorded else None,
        "checkpoint": facts.checkpoint.location,
        "recorded": facts.recorded,
        "query_id": facts.checkpoint.report.query_id,
        "marks": marks_document(facts.marks, "written"),
        "findings": [finding_document(found) for found in one.diagnosis.found],
        "errors": errors,
        "own_codes": own,
        "read": read,
        "not_checked": [missed._asdict() for missed in one.diagnosis.not_checked],
        "unread": one.diagnosis.unread._asdict() if one.diagnosis.unread is not None else None,
    }


def finding_document(found: Diagnosed) -> dict[str, Any]:
    finding = found.finding
    fields = {
        **asdict(finding),
        "severity": str(finding.severity),
        "certainty": found.certainty,
        "at_stake": found.at_stake,
        "covers": list(found.covers),
        "facts": found.facts,
    }
    return {key: value for key, value in fields.items() if value not in (None, [], {})}


def _error(explained: ExplainedError) -> dict[str, Any]:
    symptom = explained.symptom
    return {
        "symptom": symptom.symptom,
        "certainty": str(symptom.certainty),
        "line": symptom.line,
        "line_number": symptom.where,
        "params": dict(symptom.params),
        "causes": [asdict(cause) for cause in explained.causes],
        "signs": dict(signs_of(explained)),
    }
