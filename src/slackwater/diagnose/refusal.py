"""A finding as the error that a command ends with."""

from __future__ import annotations

from slackwater.errors import DataError, Refused, SlackwaterError
from slackwater.model.finding import Finding

DAMAGED = 3


def refusal(finding: Finding, stream: str) -> SlackwaterError:
    """DataError (exit 3) where something is damaged, else Refused (exit 5); each line of the hint is a step."""
    hint = "\n".join(line for line in (finding.next, finding.advice) if line) or None
    kind = DataError if finding.exit_code == DAMAGED else Refused
    return kind(
        finding.code,
        f"Stream {stream}: {finding.text}",
        where=finding.where,
        expected=finding.expected,
        found=finding.found,
        hint=hint,
    )
