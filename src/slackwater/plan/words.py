"""The commands that the hints of refused plans name."""

from __future__ import annotations

import shlex

from slackwater.model.plan import Plan, Request

MS_IN_S = 1000
ALL = "all"
ALL_MS = 1000 * 366 * 86_400_000
"""A thousand years: further back than any event time, so that all batches contribute."""


def plan_command(stream: str, request: Request, *, at: str | None = None, retention: str | None = None) -> str:
    """The command that plans what was requested; ``at`` and ``retention`` replace what the request has."""
    command = f"slackwater plan rebuild {stream}"
    target = at or request.target
    if target != "last-written":
        command += f" --at {shlex.quote(target)}"
    kept = retention or (None if request.retention_ms is None else duration(request.retention_ms))
    return command if kept is None else f"{command} --retention {kept}"


def plan_again(plan: Plan, *, retention: str | None = None) -> str:
    """The command that plans what a plan was made for, as the stream is now."""
    return plan_command(plan.stream, plan.request, retention=retention)


def duration(retention_ms: int | None) -> str:
    """A retention as it is typed; ``None``: unknown, so that all batches count."""
    return ALL if retention_ms is None or retention_ms >= ALL_MS else f"{-(-retention_ms // MS_IN_S)}s"
